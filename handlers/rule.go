package handlers

import (
	"errors"

	"creel/event"
	"creel/path"
)

// rule is one compiled rule.
type rule struct {
	name    string
	sources []string // globs; none matches every source
	types   []string // globs; none matches every type
	when    *condition
	key     *path.Template // nil: the event's key and the rule's name
	forward []string
	goName  string
	goFunc  Func
}

func (r *rule) matches(e *event.Event) bool {
	return anyGlob(r.sources, e.Key.Source) && anyGlob(r.types, e.Type)
}

func anyGlob(patterns []string, text string) bool {
	for _, pattern := range patterns {
		if event.MatchGlob(pattern, text) {
			return true
		}
	}
	return len(patterns) == 0
}

var errEmptyKey = errors.New("is empty for this event")

// businessKey names the operation that this rule does for an event.
func (r *rule) businessKey(s *subject) (string, error) {
	if r.key == nil {
		return s.work.Key.String() + "/" + event.EscapePart(r.name), nil
	}
	key, err := r.key.ExecuteKey(s.doc, s.name)
	if err == nil && key == "" {
		err = errEmptyKey
	}
	return key, err
}

// subject is the event that a decision is about.
type subject struct {
	work      event.Work
	doc       *path.Document
	tenant    string
	hasTenant bool
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
