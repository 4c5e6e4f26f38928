package handlers

import (
	"fmt"
	"slices"

	"creel/config"
)

// oneOperation tells of two rules that do the same kind of thing to one event
// under one key: that is one operation, so that the second never happens. Where
// both have a condition they may be two ways to the same thing.
func (c *compiler) oneOperation() {
	for i, r := range c.rules {
		if r.key == nil {
			continue
		}
		for j, other := range c.rules[:i] {
			if other.key == nil || other.key.String() != r.key.String() || r.when != nil && other.when != nil || !c.meet(r, other) {
				continue
			}
			if kind := doubled(&c.cfg.Rules[i], &c.cfg.Rules[j]); kind != "" {
				c.warn(config.Join(config.Item("rule", i), "key"),
					fmt.Sprintf("is that of rule[%d] too, which can match the same event: of their two %s effects the second is never done", j, kind),
					"one key is one operation: give each rule a key of its own, such as the same one with another last step")
			}
		}
	}
}

// doubled is the kind of effect that both rules have in common, "" for none.
// Kinds that the store compares with what is there are left out: what differs is
// a mismatch, and nobody misses what does not.
func doubled(a, b *config.Rule) string {
	switch {
	case a.Grant != nil && b.Grant != nil:
		return "grant"
	case a.SQL != nil && b.SQL != nil:
		return "sql"
	case a.Email != nil && b.Email != nil && share(a.Email.To, b.Email.To):
		return "email"
	case a.Run != nil && b.Run != nil && share(a.Run.To, b.Run.To):
		return "run"
	}
	return ""
}

func share(a, b config.StringList) bool {
	return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}
