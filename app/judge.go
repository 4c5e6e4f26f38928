package app

import (
	"fmt"
	"strings"

	"creel/config"
	"creel/handlers"
	"creel/source"
)

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
		problems = append(problems, compiled.ContractAdvice(config.Item("source", i), reconciles(compiled))...)
		for _, kept := range s.Rules.Kept(s.Config.Sources[i].Name) {
			problems = append(problems, keptAdvice(s.Config.Sources[i].Name, compiled, kept)...)
		}
	}
	return problems
}

// reconciles tells whether missed events of a source are looked for by itself.
func reconciles(s *source.Source) bool {
	return s.Lister() != nil && s.Lister().Rules().Every > 0
}

// keptAdvice warns of a rule that keeps a state and relies on an order that
// its sender does not give.
func keptAdvice(name string, sender *source.Source, kept handlers.Kept) config.Problems {
	warn := func(key, message, hint string) config.Problems {
		return config.Problems{{Path: kept.Path + ".state." + key, Message: message, Hint: hint, Warning: true}}
	}
	contract, _ := sender.Contract()
	switch {
	case kept.EventVersion && !sender.Orders():
		return warn("to", fmt.Sprintf("the source %q finds no version in its events: each would end in the dead letters", name),
			`write version = "{body.…}" (a number or an RFC 3339 time), or [rule.fetch]`)
	case kept.EventVersion && sender.Coarse():
		return warn("version", fmt.Sprintf("the versions of %q have whole seconds: of two events of one second the one with the greater id stays", name),
			"[rule.fetch] asks the sender which state holds; a finer version of the body is better still")
	case kept.Strict && strings.HasPrefix(contract.Ordering.Is, "unordered"):
		return warn("on_refuse", fmt.Sprintf("the sender of %q keeps no order: a step that comes too early is not tried again", name),
			`on_refuse = "retry" waits for the step before it`)
	}
	return nil
}
