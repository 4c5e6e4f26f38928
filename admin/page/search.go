package page

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"creel/event"
)

// search is what a list is narrowed by: one text with qualifiers, and choices
// that say the same. All of it stands in the address, so that a list can be
// kept and sent.
type search struct {
	Q           string // the text, as typed
	Source      string
	Destination string
	State       string
	Since       string
	Failure     int64
	Sources     []string // to choose from
	Targets     []string
	States      []string
	Problems    []string // what of it could not be understood

	ask Ask
}

// search reads what a list is to be narrowed by, from the address or from a
// form that carries it along. What is chosen narrows what is typed further.
func (q *request) search() *search {
	read := q.given
	if q.r.Method == http.MethodPost {
		read = q.form
	}
	s := &search{Q: strings.Trim(read("q"), event.QueryBlanks), Source: read("source"), Destination: read("destination"), State: read("state"),
		Since: strings.TrimSpace(read("since")), Failure: number(read("failure"))}
	s.Sources, s.Targets = q.data().Names()
	for _, state := range event.States() {
		s.States = append(s.States, string(state))
	}
	selector, err := event.ParseQuery(s.Q, q.now)
	if err != nil {
		s.Problems = append(s.Problems, err.Error())
		selector = event.Selector{}
	}
	selector.Source, selector.Destination = cmp.Or(s.Source, selector.Source), cmp.Or(s.Destination, selector.Destination)
	selector.Failure = cmp.Or(s.Failure, selector.Failure)
	if s.State != "" && !slices.Contains(s.States, s.State) {
		s.Problems = append(s.Problems, fmt.Sprintf("%q is no state of an event.", s.State))
	} else {
		selector.State = cmp.Or(event.State(s.State), selector.State)
	}
	if s.Since != "" {
		if err = selector.SetSince(s.Since, q.now); err != nil {
			s.Problems = append(s.Problems, err.Error())
		}
	}
	s.ask = Ask{Selector: selector, Limit: rows, Cursor: read("after")}
	return s
}

// dead narrows a search to dead letters. Another state is none of theirs, and
// is not passed over in silence: what is seen is what a plan would mean.
func (s *search) dead() {
	if s.ask.State != "" && s.ask.State != event.Dead {
		s.Problems = append(s.Problems, fmt.Sprintf("Dead letters are dead, and not %s: events of all states are listed below Events.", s.ask.State))
	}
	s.ask.State = event.Dead
}

// Narrowed tells whether anything narrows the list.
func (s *search) Narrowed() bool {
	return s.Q != "" || s.Source != "" || s.Destination != "" || s.State != "" || s.Since != "" || s.Failure != 0
}

// JSON is the same search, from the same row on, for the API.
func (s *search) JSON() template.URL {
	return template.URL(query([]string{"q", s.ask.Selector.Query(), "cursor", s.ask.Cursor}))
}

// All is the same search from its beginning to its end, for the API.
func (s *search) All() template.URL {
	return template.URL(query([]string{"q", s.ask.Selector.Query()}))
}

// Fields are the fields of the form, for another form that means the same.
func (s *search) Fields() map[string]string {
	return map[string]string{"q": s.Q, "source": s.Source, "destination": s.Destination, "state": s.State, "since": s.Since}
}
