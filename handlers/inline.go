package handlers

import (
	"strconv"

	"creel/config"
	"creel/event"
)

// Inline tells whether the rules of a source may be applied in the transaction
// that stores the event: none of them waits for anything outside or needs a
// transaction of its own. Where one does, it is named.
func (rs *Rules) Inline(source string) (offender string, ok bool) {
	for _, r := range rs.rules {
		if r.outside() != "" && event.MatchAny(r.sources, source) {
			return r.name, false
		}
	}
	return "", true
}

// outside is the table of a rule that needs more than the transaction in which
// an event is stored, "" where there is none.
func (r *rule) outside() string {
	switch {
	case r.fetch != nil:
		return "fetch"
	case r.sql:
		return "sql"
	case r.goName != "":
		return "go"
	}
	return ""
}

// inline refuses sources whose rules can not be applied inline.
func (c *compiler) inline() {
	for i, s := range c.cfg.Sources {
		if s.Process != "inline" {
			continue
		}
		for _, r := range c.rules {
			if table := r.outside(); table != "" && event.MatchAny(r.sources, s.Name) {
				c.fault(config.Join(config.Item("source", i), "process"),
					`can not be "inline": the rule `+strconv.Quote(r.name)+" has "+table,
					`write process = "queue", or keep the rule away from this source by its match`)
				break
			}
		}
	}
}
