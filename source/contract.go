package source

import (
	"fmt"
	"strings"

	"creel/config"
)

// Unknown is what a fact says where nothing could be found about it.
const Unknown = "unknown"

// Fact is one thing about how a sender delivers, and where that was found.
type Fact struct {
	Is   string `toml:"is" json:"is"`     // "unknown" where nothing was found
	From string `toml:"from" json:"from"` // the document or source file that says so
}

// Known tells whether there is something to rely on.
func (f Fact) Known() bool { return f.Is != "" && f.Is != Unknown }

// Contract is how a sender delivers, in the sender's own terms.
type Contract struct {
	Timeout   Fact `toml:"timeout" json:"timeout"`     // how long the sender waits for an answer
	Retries   Fact `toml:"retries" json:"retries"`     // "none", or how often and how far apart
	Span      Fact `toml:"span" json:"span"`           // from the first try to the last
	Ordering  Fact `toml:"ordering" json:"ordering"`   // "unordered", "ordered", or what holds
	Semantics Fact `toml:"semantics" json:"semantics"` // "at least once", "at most once"
	StableID  Fact `toml:"stable_id" json:"stable_id"` // whether a retry carries the same id
	Disables  Fact `toml:"disables" json:"disables"`   // when the sender switches the endpoint off
	Missed    Fact `toml:"missed" json:"missed"`       // where missed events can be listed; "none"
	Rotation  Fact `toml:"rotation" json:"rotation"`   // what happens when the secret is changed
}

// NamedFact is a fact with its word.
type NamedFact struct {
	Name string
	Fact
}

// Facts lists the facts in the order in which they are shown.
func (c Contract) Facts() []NamedFact {
	return []NamedFact{
		{"timeout", c.Timeout}, {"retries", c.Retries}, {"span", c.Span}, {"ordering", c.Ordering},
		{"semantics", c.Semantics}, {"stable id", c.StableID}, {"disables", c.Disables},
		{"missed events", c.Missed}, {"rotation", c.Rotation},
	}
}

// Contract is the delivery contract of a preset; false where there is no such
// preset.
func ContractOf(name string) (Contract, bool) {
	p, ok, _ := preset(name)
	if !ok {
		return Contract{}, false
	}
	return p.Contract, true
}

// Contract is the delivery contract of the source's sender; false where the
// owner described the sender.
func (s *Source) Contract() (Contract, bool) {
	if s.preset == nil {
		return Contract{}, false
	}
	return s.preset.Contract, true
}

// Orders tells whether the source looks for a version of its events.
func (s *Source) Orders() bool { return len(s.scheme.version) > 0 }

// Coarse tells whether two events of one second have the same version.
func (s *Source) Coarse() bool { return s.preset != nil && s.preset.Coarse }

// ContractAdvice tells check where the sender's contract asks for care: a
// warning where the configuration can do something about it, else a note.
// reconciles says that missed events of the source are looked for.
func (s *Source) ContractAdvice(prefix string, reconciles bool) config.Problems {
	c, ok := s.Contract()
	if !ok {
		return nil
	}
	var out config.Problems
	say := func(level config.Level, message, hint string) {
		out = append(out, config.Problem{Path: prefix + ".provider", Message: message, Hint: hint,
			Warning: level == config.LevelWarning, Note: level == config.LevelNote})
	}
	if c.Retries.Is == "none" && !reconciles {
		level, hint := s.missed(c)
		say(level, s.title+" sends every event once: one that does not arrive is lost", hint)
	}
	if c.Semantics.Is == "at most once" && c.Retries.Is != "none" && !reconciles {
		level, hint := s.missed(c)
		say(level, s.title+" may drop events", hint)
	}
	var unknown []string
	for _, fact := range c.Facts()[:5] {
		if !fact.Known() {
			unknown = append(unknown, fact.Name)
		}
	}
	if len(unknown) > 0 {
		say(config.LevelNote, fmt.Sprintf("%s does not say its %s", s.title, strings.Join(unknown, ", ")),
			"rely on nothing there: compare with the sender's own list now and then")
	}
	return out
}

// missed is what can be done about missed events, and how much that matters:
// where the sender has a list that can be read, everything.
func (s *Source) missed(c Contract) (config.Level, string) {
	switch {
	case s.preset.Reconcile != nil:
		return config.LevelWarning, "write [source.reconcile] with a token, which finds them; the sender has " + c.Missed.Is
	case !c.Missed.Known() || c.Missed.Is == "none":
		return config.LevelNote, "the sender has no list of events: fetch the objects themselves now and then"
	}
	return config.LevelNote, "missed events: " + c.Missed.Is
}
