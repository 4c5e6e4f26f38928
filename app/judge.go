package app

import "creel/config"

// Judge gives a loaded configuration its meaning and reports everything that
// is wrong with it at once: what loading it found, and what compiling it finds,
// each with its place in the file. The snapshot is nil where a problem stops
// the start. file may be nil where there is none.
func Judge(cfg *config.Config, file *config.File, problems config.Problems, m Meaning) (*Snapshot, config.Problems) {
	snapshot, found := Compile(cfg, m)
	problems = place(file, append(append(config.Problems{}, problems...), found...))
	if problems.Err() != nil {
		return nil, problems
	}
	return snapshot, problems
}

// place adds file and line to problems and puts them in order.
func place(file *config.File, problems config.Problems) config.Problems {
	if file == nil {
		return problems.Sorted()
	}
	return file.Locate(problems)
}

// Advice is what the senders' delivery contracts ask for and the
// configuration does not do. None of it stops a start.
func (s *Snapshot) Advice() config.Problems {
	var problems config.Problems
	for i := range s.Config.Sources {
		compiled := s.Sources[s.Config.Sources[i].Name]
		problems = append(problems, compiled.ContractWarnings(config.Item("source", i), false)...)
	}
	return problems
}
