package handlers

import (
	"creel/event"
	"creel/path"
)

// rule is one compiled rule.
type rule struct {
	name    string
	at      string   // where it stands in the configuration
	sources []string // globs; none matches every source
	types   []string // globs; none matches every type
	when    *condition
	key     *path.Template // nil: the event's key and the rule's name
	order   *path.Template // of the lane; nil: none
	skip    bool           // a dead event lets those behind it in its lane pass
	fetch   *fetch
	state   *state
	makers  []maker // in the order in which their effects are applied
	sql     bool    // statements of the owner's are among them
	goName  string
	goFunc  Func
	running chan struct{} // one token for each call that has not returned
}

func (r *rule) matches(e *event.Event) bool {
	return event.MatchAny(r.sources, e.Key.Source) && event.MatchAny(r.types, e.Type)
}

// businessKey names the operation that this rule does for an event.
func (r *rule) businessKey(s *subject) (string, error) {
	if r.key == nil {
		return s.work.Key.String() + "/" + event.EscapePart(r.name), nil
	}
	key, err := r.key.ExecuteKey(s.doc, s.name)
	if err == nil && key == "" {
		err = errEmpty
	}
	return key, err
}

// subject is the event that a decision is about.
type subject struct {
	work   event.Work
	doc    *path.Document
	tenant string
	body   []byte // that was fetched; nil: what was received
}

// document reads the event anew.
func (s *subject) document() *path.Document {
	doc := path.NewDocument(s.work.Payload)
	if s.body == nil {
		return doc
	}
	return doc.Of(path.Element{Part: s.work.Part, Raw: s.body})
}

// name gives the text of a plain name in a template. Only the account may be
// empty: a key that is built on nothing would be one key for many events.
func (s *subject) name(name string) (string, bool) {
	text := s.text(name)
	return text, text != "" || name == "account"
}

func (s *subject) text(name string) string {
	switch name {
	case "source":
		return s.work.Key.Source
	case "account":
		return s.work.Key.Account
	case "tenant":
		return s.tenant
	case "id":
		if s.work.LongID != "" {
			return s.work.LongID
		}
		return s.work.Key.ID
	case "type":
		return s.work.Type
	case "object":
		return s.work.Object
	case "version":
		return s.work.Version
	case "event":
		return s.work.Key.String()
	}
	return ""
}
