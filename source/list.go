package source

import (
	"net/http"
	"net/url"
	"time"

	"creel/event"
	"creel/path"
)

// Lister reads the list of events that a sender keeps. It asks only the scheme,
// host and port that the configuration writes, whatever an answer says, so that
// no answer decides whom the token is sent to. It is safe for concurrent use.
type Lister struct {
	src    *Source
	lists  []template
	method string
	header http.Header
	query  url.Values

	from, to, size, cursor string // parameters; "" is none
	unit                   string
	pageSize               int
	next                   string
	nextAt, more           place
	oldest                 bool
	maxPages               int
	every                  time.Duration // between two requests

	items   path.Split
	absent  bool // an answer without items is an empty list
	wrong   place
	id      choice
	kind    choice
	at      place
	pageID  choice
	detail  template
	again   template
	body    place
	carried map[string]choice

	rules  ListRules
	secret []string // what no text may show
	client *http.Client
}

// ListRules say when a list is compared and what counts.
type ListRules struct {
	Every   time.Duration // 0 is never by itself
	Import  bool
	Lag     time.Duration
	Overlap time.Duration
	Reach   time.Duration // 0 is as far as one likes
	types   []string
}

// Lister is what reads the sender's list of events; nil where none is
// configured.
func (s *Source) Lister() *Lister { return s.lister }

// Rules say when the list is compared with the inbox.
func (l *Lister) Rules() ListRules { return l.rules }

// Redelivers tells whether the sender can be asked to deliver an event again.
func (l *Lister) Redelivers() bool { return len(l.again.pieces) > 0 }

// Span is a stretch of time, its end not included.
type Span struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Empty tells whether no moment is in the span.
func (s Span) Empty() bool { return !s.From.Before(s.Until) }

// Reachable takes away what the sender no longer lists at now: lost is that
// stretch, empty where nothing is.
func (l *Lister) Reachable(span Span, now time.Time) (reachable, lost Span) {
	if l.rules.Reach <= 0 {
		return span, Span{}
	}
	edge := now.Add(-l.rules.Reach)
	if !span.From.Before(edge) {
		return span, Span{}
	}
	lost = Span{From: span.From, Until: edge}
	if span.Until.Before(edge) {
		lost.Until = span.Until
	}
	return Span{From: edge, Until: span.Until}, lost
}

// Listed is one event of the list.
type Listed struct {
	// Key is its key. Where the list names the id alone, Exact is false: the
	// account is not known.
	Key   event.Key
	Exact bool
	Type  string
	At    time.Time // zero where the list does not say

	item *path.Document
	raw  []byte
}

// counts tells whether an event of the list is one that the inbox should have.
func (l *Lister) counts(kind string) bool {
	if l.src.ignores(kind) {
		return false
	}
	for _, pattern := range l.rules.types {
		if event.MatchGlob(pattern, kind) {
			return true
		}
	}
	return len(l.rules.types) == 0
}
