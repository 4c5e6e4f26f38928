package app

import "creel/config"

// nowhere warns of sources whose events no rule can match.
func (s *Snapshot) nowhere() config.Problems {
	var problems config.Problems
	for i := range s.Config.Sources {
		if name := s.Config.Sources[i].Name; !s.Rules.MatchesSource(name) {
			problems = append(problems, config.Problem{Path: config.Item("source", i), Warning: true,
				Message: "no rule takes its events: they are stored as ignored",
				Hint:    `forward = "NAME" of a destination on the source, or a [[rule]] that matches it`})
		}
	}
	return problems
}
