package drill

import (
	"crypto/sha256"
	"time"

	"creel/event"
)

// subject is a rule that is drilled.
type subject struct {
	name           string
	sources, types []string
	fetches, keyed bool     // it has a [rule.fetch]; a key of its own
	forward        []string // the destinations of a source's own forward, which is no rule that could have a key
	wanted         bool
	sample         bool
	candidates     []*piece
	reason, hint   string         // why it is not drilled
	left           map[string]int // why events of it were left out
	unsteady       bool           // it does not say the same twice
	findings       []Finding
}

func (r *subject) matches(e *event.Event) bool {
	return event.MatchAny(r.sources, e.Key.Source) && event.MatchAny(r.types, e.Type)
}

// piece is an event that is told anew.
type piece struct {
	work    event.Work
	sample  bool
	effects map[string][]event.Effect // that were decided, by rule
}

// object is what the piece is about, as far as a rule is concerned.
func (p *piece) object(rule string) string {
	for _, e := range p.effects[rule] {
		if s, is := e.(event.SetState); is {
			return s.Object
		}
	}
	return p.about()
}

// about is the object that its source says it is about; "" for none.
func (p *piece) about() string {
	if p.work.Object == "" {
		return ""
	}
	return p.work.Key.Source + "/" + p.work.Key.Account + "/" + p.work.Object
}

// receipt is the request that tells the piece. more is put behind its id, which
// makes it another event with the same body.
func (p *piece) receipt(at time.Time, more string) *event.Receipt {
	sum := sha256.Sum256(append([]byte(p.work.Part+"\x00"), p.work.Body...))
	item := event.Item{
		Key: p.work.Key, LongID: p.work.LongID, Type: p.work.Type, Object: p.work.Object, Version: p.work.Version,
		Part: p.work.Part, State: event.Pending,
	}
	if more != "" {
		item.Key, item.LongID = twinOf(p.work.Event, more)
	}
	copy(item.Content[:], sum[:])
	return &event.Receipt{
		Source: p.work.Key.Source, Origin: p.work.Origin, At: at, Body: p.work.Body, Header: p.work.Header, Query: p.work.Query,
		Items: []event.Item{item},
	}
}

// twinOf is the key of another event about the same thing.
func twinOf(e event.Event, more string) (key event.Key, long string) {
	key, long = e.Key, e.LongID
	if long == "" {
		long = key.ID
	}
	key.ID, long = event.Fold(long + more)
	return key, long
}
