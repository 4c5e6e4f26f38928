package page

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"creel/event"
)

// deadView is the home of the page: what is broken, why, and the way to mend it.
type deadView struct {
	Search  *search
	Flat    bool
	Group   *event.Failure // of which the letters are shown
	Groups  []event.Failure
	Lone    map[int64]event.Event // of groups with one dead letter: it is replayed at one click
	Letters []Letter
	Health  map[string]event.DestinationHealth
	Partial bool
	Pager   pager
	Targets []string // destinations that can be resumed: those of the configuration
	Here    string   // the address of this list, to come back to
	Ready   bool     // nothing narrows the list and nothing is dead
}

// deadLetters shows the dead letters, grouped by how they failed or one by one.
func deadLetters(q *request) {
	s := q.search()
	s.dead()
	s.Failure = s.ask.Failure
	v := deadView{Search: s, Targets: s.Targets, Here: q.r.URL.RequestURI()}
	v.Flat = q.given("view") == "flat" || s.single()
	var err error
	if s.Failure != 0 {
		var group event.Failure
		if group, err = q.data().Failure(q.ctx, s.Failure); err != nil {
			q.failed(err)
			return
		}
		v.Group = &group
	}
	next := ""
	if len(s.Problems) > 0 {
		q.render(http.StatusOK, "dead", layout{Title: "Dead letters", Here: "Dead letters", Content: v})
		return
	}
	if v.Flat {
		var letters Letters
		letters, err = q.data().Letters(q.ctx, s.ask)
		v.Letters, v.Partial, next = letters.List, letters.Partial, letters.Next
	} else {
		var groups Failures
		groups, err = q.data().Failures(q.ctx, s.ask)
		v.Groups, next = groups.List, groups.Next
		if err == nil {
			v.Lone, err = q.lone(groups.List)
		}
	}
	if err == nil {
		v.Health, err = q.data().Health(q.ctx)
	}
	if err != nil {
		q.failed(err)
		return
	}
	v.Pager = q.pages("after", next)
	v.Ready = len(v.Groups)+len(v.Letters) == 0 && !s.Narrowed()
	q.render(http.StatusOK, "dead", layout{Title: "Dead letters", Here: "Dead letters", Live: true, Content: v})
}

// lone are the events of the groups of one.
func (q *request) lone(groups []event.Failure) (map[int64]event.Event, error) {
	var ones []event.Failure
	for _, g := range groups {
		if g.Dead == 1 {
			ones = append(ones, g)
		}
	}
	if len(ones) == 0 {
		return nil, nil
	}
	return q.data().Lone(q.ctx, ones)
}

// One is what a button sends that replays the dead letter of a group of one; ""
// where it has more.
func (v deadView) One(group int64) string {
	e, is := v.Lone[group]
	if !is {
		return ""
	}
	return strconv.Itoa(e.Run) + " " + e.Key.String()
}

// Total is how many dead letters there are, where the page lists all groups; it
// is added up and not counted.
func (v deadView) Total() (sum int) {
	if v.Search.Narrowed() || v.Pager.Next != "" || v.Pager.First != "" {
		return 0
	}
	for i := range v.Groups {
		sum += v.Groups[i].Dead
	}
	return sum
}

// Resumes tells whether the deliveries to a destination stand still until it is
// back, and can be made to go on at once.
func (v deadView) Resumes(destination string) bool {
	state := v.Health[destination].State
	return (state == event.DestinationHeld || state == event.DestinationDisabled) && slices.Contains(v.Targets, destination)
}

// Error is why it is dead.
func (l Letter) Error() string {
	if l.Delivery.ID != 0 {
		return l.Delivery.Error
	}
	return l.Event.Error
}

// Attempts is how often it was tried.
func (l Letter) Attempts() int {
	if l.Delivery.ID != 0 {
		return l.Delivery.Tries
	}
	return l.Event.Attempts
}

// At is when it died.
func (l Letter) At() time.Time {
	if l.Delivery.ID != 0 {
		return l.Delivery.FinishedAt
	}
	return l.Event.FinishedAt
}

// Blocks says how many newer ones it holds up; "" where it holds up none.
func (l Letter) Blocks() string {
	switch {
	case l.Behind <= 0:
		return ""
	case l.Behind > MaxBehind:
		return fmt.Sprintf("blocks %d+ newer", MaxBehind)
	}
	return fmt.Sprintf("blocks %d newer", l.Behind)
}

// single tells whether a search is for events rather than for a kind of failure:
// groups can not be narrowed by it.
func (s *search) single() bool {
	a := &s.ask.Selector
	return a.Failure != 0 || len(a.Keys) > 0 || a.ID != "" || a.Word != "" || a.Object != "" || a.Type != "" || a.Account != "" ||
		len(a.Index) > 0 || !a.Since.IsZero() || !a.Until.IsZero()
}
