package page

import (
	"cmp"
	"fmt"
	"net/http"

	"creel/event"
)

// figure is one of the counts of the last hour, with what it counts.
type figure struct {
	Kind event.TallyKind
	Text string
}

// receivedKinds are what is counted of a source, sentKinds of a destination.
func receivedKinds() []figure {
	return []figure{{event.TallyReceipts, "received"}, {event.TallyNew, "new"}, {event.TallyDuplicates, "duplicates"},
		{event.TallyConflicts, "conflicts"}, {event.TallyRejects, "rejected"}, {event.TallyDeadEvents, "died"}}
}

func sentKinds() []figure {
	return []figure{{event.TallySent, "sent"}, {event.TallyFailed, "failed"}, {event.TallyDeadDeliveries, "died"}}
}

// overviewView is how everything is.
type overviewView struct {
	Signals      []signalRow
	Server       Server
	Sources      []Source
	Destinations []Destination
	Incidents    []event.OpenIncident
}

func overview(q *request) {
	var v overviewView
	all, _ := q.data().Signals()
	v.Signals = signalRows(all)
	var err error
	if v.Server, err = q.data().Server(q.ctx); err == nil {
		v.Sources, err = q.data().Sources(q.ctx)
	}
	if err == nil {
		v.Destinations, err = q.data().Destinations(q.ctx)
	}
	if err == nil {
		v.Incidents, err = q.data().Incidents(q.ctx, true, event.Page{Limit: 10})
	}
	if err != nil {
		q.failed(err)
		return
	}
	q.render(http.StatusOK, "overview", layout{Title: "Overview", Here: "Overview", Live: true, Content: v})
}

func listSources(q *request) {
	list, err := q.data().Sources(q.ctx)
	if err != nil {
		q.failed(err)
		return
	}
	q.render(http.StatusOK, "sources", layout{Title: "Sources", Here: "Sources", Live: true, Content: list})
}

func listDestinations(q *request) {
	list, err := q.data().Destinations(q.ctx)
	if err != nil {
		q.failed(err)
		return
	}
	q.render(http.StatusOK, "destinations", layout{Title: "Destinations", Here: "Destinations", Live: true, Content: list})
}

// switchDestination pauses or resumes one.
func switchDestination(q *request) {
	kind := event.ActionKind(q.form("do"))
	if kind != event.ActionPause && kind != event.ActionResume {
		q.fail(http.StatusBadRequest, "The form says neither pause nor resume.")
		return
	}
	name := q.form("name")
	done, err := q.act(event.Action{Kind: kind, Target: name, Reason: q.typed("reason")})
	if err != nil {
		q.failed(err)
		return
	}
	said := fmt.Sprintf("%s is paused: its deliveries wait.", name)
	switch {
	case done.Done == 0:
		said = fmt.Sprintf("%s was %sd already: nothing was changed.", name, kind)
	case kind == event.ActionResume:
		said = fmt.Sprintf("%s is resumed: its deliveries go out again, the oldest first.", name)
	}
	q.back(cmp.Or(q.form("back"), "/destinations"), said+fmt.Sprintf(" It stands as number %d in the audit trail.", done.ID))
}
