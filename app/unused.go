package app

import "creel/config"

// unused warns of keys that are read and do nothing in this version: an owner
// who set them must not believe that somebody is told.
func unused(cfg *config.Config) config.Problems {
	var problems config.Problems
	warn := func(set bool, path, message string) {
		if set {
			problems = append(problems, config.Problem{Path: path, Message: message, Warning: true,
				Hint: "the changelog says when it does"})
		}
	}
	warn(cfg.SMTP.Host != "", "smtp.host", "this version sends no mail")
	warn(len(cfg.Alerts.To) > 0, "alerts.to", "this version opens incidents (creel health shows them) and tells nobody")
	warn(!cfg.Admin.Password.IsZero(), "admin.password", "this version has no page to log in to")
	warn(cfg.Admin.PublicURL != "", "admin.public_url", "this version has no page")
	for i := range cfg.Sources {
		warn(len(cfg.Sources[i].Index) > 0, config.Join(config.Item("source", i), "index"), "this version has no search by body fields")
	}
	return problems
}

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
