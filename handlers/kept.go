package handlers

import "creel/event"

// Kept is a rule that keeps a state, as far as its sender's order matters.
type Kept struct {
	Rule string
	Path string // of the rule in the configuration
	// EventVersion says that the versions are those that the source finds, and
	// that nothing is fetched where it finds none.
	EventVersion bool
	// Strict says that a step which comes before the one it follows is not
	// tried again.
	Strict bool
}

// Kept lists the rules of a source that keep a state.
func (rs *Rules) Kept(source string) []Kept {
	var out []Kept
	for _, r := range rs.rules {
		if r.state == nil || !event.MatchAny(r.sources, source) {
			continue
		}
		out = append(out, Kept{
			Rule: r.name, Path: r.at,
			EventVersion: r.state.from == nil && r.fetch == nil && r.state.version.String() == defaultVersion,
			Strict:       r.state.from != nil && r.state.onRefuse != event.RefuseLater,
		})
	}
	return out
}
