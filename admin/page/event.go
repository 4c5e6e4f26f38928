package page

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"creel/event"
)

// eventView is one event: what came, what it did, and what can be done.
type eventView struct {
	Detail
	Name    string
	KeyText string
	Show    string // pretty, raw, changed or headers
	Shown   shownBody
	Pieces  []piece      // of it, where it has values by which events are found
	Gone    bool         // the body is not kept
	Earlier *event.Event // of the same object, one step before; nil where no body of one is kept
	Changes *changes     // from that one, where they are shown
	Curl    *curled      // how to send it by hand; nil where the body is not kept
	// ObjectEvents are events of the same object, newest first.
	ObjectEvents []event.Event
	Out          map[int64]event.Outgoing // of those
	Health       map[string]event.DestinationHealth
	CanReplay    bool
	CanDiscard   bool
	Back         string
}

// showEvent is the page of one event.
func showEvent(q *request) {
	key, err := event.ParseKey(q.given("key"))
	if err != nil {
		q.fail(http.StatusNotFound, "That is not an event key: source/account/id, or source/id where there is no account.")
		return
	}
	detail, err := q.data().Event(q.ctx, key)
	if err != nil {
		q.failed(err)
		return
	}
	v := eventView{Detail: detail, Name: nameOf(detail.Event), KeyText: detail.Key.String(), Show: q.given("show"), Back: eventPath(detail.Key)}
	v.Gone = len(detail.Payload.Body) == 0
	if err = v.relate(q); err == nil {
		err = v.showBody(q)
	}
	if err == nil {
		v.Health, err = q.data().Health(q.ctx)
	}
	if err != nil {
		q.failed(err)
		return
	}
	var ok bool
	if v.Out, ok = q.outgoing(v.ObjectEvents); !ok {
		return
	}
	v.CanReplay = detail.State != event.Claimed && event.CanMove(detail.State, event.Pending)
	v.CanDiscard = detail.State == event.Dead || hasDead(detail.Deliveries)
	q.render(http.StatusOK, "event", layout{Title: v.Name, Here: "Events", Content: v})
}

// relate finds the events of the same object, and the one that came before.
func (v *eventView) relate(q *request) error {
	if v.Object == "" {
		return nil
	}
	same, err := q.data().Events(q.ctx, Ask{Selector: event.Selector{Source: v.Key.Source, Object: v.Object}, Limit: sameObject})
	if err != nil {
		return err
	}
	if v.ObjectEvents = same.List; !v.Gone {
		v.Earlier, err = q.earlier(&v.Event, same.List)
	}
	return err
}

// showBody makes what the open tab shows.
func (v *eventView) showBody(q *request) (err error) {
	switch {
	case v.Show == "raw", v.Show == "headers", v.Show == "changed" && v.Earlier != nil:
	default:
		v.Show = "pretty"
	}
	v.Shown = showBody(v.Body, v.Show == "pretty")
	if !v.Gone {
		v.Curl = asCurl(v.Key, &v.Payload)
	}
	switch v.Show {
	case "headers":
		v.Shown.Text, v.Shown.Odd = visible([]byte(v.Header))
	case "pretty":
		if places := q.data().Places(&v.Work); v.Shown.Pretty && len(places) > 0 {
			v.Pieces = pieces(indent(headOf(v.Body)), v.Key.Source, places)
		}
	case "changed":
		v.Changes, err = q.changed(v.Body, *v.Earlier)
	}
	return err
}

func hasDead(list []Attempted) bool {
	for i := range list {
		if list[i].State == event.DeliveryDead {
			return true
		}
	}
	return false
}

// Linked tells whether a value of the body leads to the events that have it.
func (v eventView) Linked() bool {
	return slices.ContainsFunc(v.Pieces, func(p piece) bool { return p.Query != "" })
}

// Tab tells which tab of the body is open.
func (v eventView) Tab(name string) bool { return v.Show == name }

// Trouble is what of it needs a person, in a line; "" where nothing does.
func (v eventView) Trouble() string {
	switch {
	case v.State == event.Dead:
		return v.Event.Error
	case hasDead(v.Deliveries):
		for _, d := range v.Deliveries {
			if d.State == event.DeliveryDead {
				return "the delivery to " + d.Destination + " is dead: " + d.Error
			}
		}
	}
	return ""
}

// bodyTime bounds how long a browser may take to read a body.
const bodyTime = 2 * time.Minute

// download hands the body out as it came, and as nothing that a browser would
// show or run.
func download(q *request) {
	key, err := event.ParseKey(q.given("key"))
	if err != nil {
		q.fail(http.StatusNotFound, "That is not an event key.")
		return
	}
	body, _, err := q.data().Body(q.ctx, key)
	if err != nil {
		q.failed(err)
		return
	}
	h := q.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(key)}))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(bodyTime))
	_, _ = q.w.Write(body)
}

// fileName is a name that every system takes: letters and digits of the key.
func fileName(key event.Key) string {
	name := []byte(key.Source + "-" + key.ID)
	for i, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			name[i] = '-'
		}
	}
	return string(name[:min(len(name), 100)]) + ".body"
}

// eventsView is a list of events.
type eventsView struct {
	Search  *search
	List    []event.Event
	Out     map[int64]event.Outgoing
	Pager   pager
	Partial bool
}

// listEvents is the inbox, newest first.
func listEvents(q *request) {
	v := eventsView{Search: q.search()}
	if len(v.Search.Problems) > 0 {
		q.render(http.StatusOK, "events", layout{Title: "Events", Here: "Events", Content: v})
		return
	}
	found, err := q.data().Events(q.ctx, v.Search.ask)
	if err != nil {
		q.failed(err)
		return
	}
	v.List, v.Partial, v.Pager = found.List, found.Partial, q.pagesBy(found.Next != 0, found.Next)
	var ok bool
	if v.Out, ok = q.outgoing(v.List); !ok {
		return
	}
	q.render(http.StatusOK, "events", layout{Title: "Events", Here: "Events", Live: v.Search.ask.Cursor == "", Content: v})
}
