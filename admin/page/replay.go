package page

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"creel/admin"
	"creel/event"
)

// replayOne runs one event again, at one click. The form names the run that was
// seen: in another one it is refused, so that a double click is one replay.
func replayOne(q *request) {
	run, text, _ := strings.Cut(q.form("one"), " ")
	key, err := event.ParseKey(text)
	if err != nil || number(run) == 0 {
		q.fail(http.StatusBadRequest, "The form names no event.")
		return
	}
	done, err := q.act(event.Action{Kind: event.ActionReplay, Reason: q.typed("reason"),
		Selector: event.Selector{Keys: []event.Key{key}, Run: int(number(run))}})
	if err != nil {
		q.failed(err)
		return
	}
	q.back(q.form("back"), replayed(key, done))
}

func replayed(key event.Key, done event.Action) string {
	if done.Done == 0 {
		return fmt.Sprintf("%s was not replayed: it runs again already, or ran since this page was made. It stands as number %d in the audit trail.", key, done.ID)
	}
	return fmt.Sprintf("%s is replayed: its rules run again, and what was applied or sent stays so. It stands as number %d in the audit trail.", key, done.ID)
}

// planView is what would happen, before anything does.
type planView struct {
	Plan
	Words   string // what it does
	Which   string // the selection
	Command string // the same from a shell; "" where it can not be said in one line
	Back    string
	Out     map[int64]event.Outgoing
}

// makePlan freezes what was chosen and looks at what would become of it.
// Nothing is changed; the plan has an address of its own.
func makePlan(q *request) {
	do, all := strings.CutSuffix(q.form("do"), " all")
	kind := event.ActionKind(do)
	if kind != event.ActionReplay && kind != event.ActionDiscard {
		q.fail(http.StatusBadRequest, "The form says neither replay nor discard.")
		return
	}
	s := q.search()
	s.dead()
	if keys := q.r.PostForm["key"]; !all {
		if s.ask.Selector = (event.Selector{}); len(keys) == 0 {
			q.fail(http.StatusBadRequest, "Nothing was selected: tick some rows, or choose all that match.")
			return
		}
		for _, text := range keys {
			key, err := event.ParseKey(text)
			if err != nil {
				q.fail(http.StatusBadRequest, "The form names something that is no event.")
				return
			}
			s.ask.Keys = append(s.ask.Keys, key)
		}
	}
	if len(s.Problems) > 0 {
		q.fail(http.StatusBadRequest, strings.Join(s.Problems, " "))
		return
	}
	action := event.Action{Kind: kind, Selector: s.ask.Selector}
	if kind == event.ActionDiscard && action.Selector.Failure != 0 {
		group, err := q.data().Failure(q.ctx, action.Selector.Failure)
		if err != nil {
			q.failed(err)
			return
		}
		action.Target = group.Destination // what is dead of these events elsewhere stays so
	}
	plan, err := q.operator().Plan(q.ctx, q.signed(action))
	if err != nil {
		q.failed(err)
		return
	}
	q.toPlan(plan.ID, q.form("back"))
}

// toPlan leads to a plan, and from there back to where it was made.
func (q *request) toPlan(id, back string) {
	path := "/plan/" + id
	if back = within(back); back != "/" {
		path += query([]string{"back", back})
	}
	q.back(path, "")
}

const noPlan = "That plan is not known any more: plans are kept for half an hour, and end with the server. Make another one."

// lookAgain makes the same plan anew, with what was sent or without it: what
// would happen is counted before it is asked for.
func lookAgain(q *request, plan Plan, resend bool) {
	action := plan.Action
	action.Resend = resend
	made, err := q.operator().Plan(q.ctx, q.signed(action))
	if err != nil {
		q.failed(err)
		return
	}
	q.toPlan(made.ID, q.form("back"))
}

// showPlan is what would happen.
func showPlan(q *request) {
	plan, err := q.operator().FindPlan(q.params.ByName("id"))
	if err != nil {
		q.fail(http.StatusNotFound, noPlan)
		return
	}
	v := planView{Plan: plan, Words: "replay", Which: admin.Selection(plan.Action.Selector), Command: command(plan.Action), Back: within(q.given("back"))}
	listed := make([]event.Event, len(plan.Items))
	for i := range plan.Items {
		listed[i] = plan.Items[i].Event
	}
	var ok bool
	if v.Out, ok = q.outgoing(listed); !ok {
		return
	}
	title := "Replay plan"
	if plan.Action.Kind == event.ActionDiscard {
		v.Words, title = "discard", "Discard plan"
	}
	q.render(http.StatusOK, "plan", layout{Title: title, Here: "Dead letters", Content: v})
}

// carryPlan does what a plan says. Who asks again, in this browser or another,
// is shown what the first one did.
func carryPlan(q *request) {
	id, reason := q.params.ByName("id"), q.typed("reason")
	plan, err := q.operator().FindPlan(id)
	if err != nil {
		q.fail(http.StatusNotFound, noPlan)
		return
	}
	if do := q.form("do"); do != "" {
		lookAgain(q, plan, do == "look again")
		return
	}
	if reason == "" {
		q.fail(http.StatusBadRequest, "Say why: the reason stands in the audit trail.")
		return
	}
	action := event.Action{Reason: reason, Resend: plan.Action.Resend}
	if text := q.typed("rate"); text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || !(rate > 0) {
			q.fail(http.StatusBadRequest, "Events per second is a number above 0, or empty.")
			return
		}
		action.Rate = rate
	}
	done, err := goesOn(q.operator().Carry(q.patient(), id, q.signed(action)))
	if err != nil {
		q.failed(err)
		return
	}
	q.back(fmt.Sprintf("/audit/%d", done.ID), "")
}

// command is the same from a shell, where it can be said in one line.
func command(a event.Action) string {
	s := a.Selector
	if len(s.Keys) > 20 || a.Target != "" {
		return ""
	}
	words := []string{"creel", string(a.Kind)}
	for _, key := range s.Keys {
		words = append(words, quoted(key.String()))
	}
	if len(s.Keys) == 0 {
		words = append(words, "--query", quoted(s.Query()))
	}
	return strings.Join(append(words, "--dry-run"), " ")
}

// quoted is a text as a shell takes it.
func quoted(text string) string {
	if text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%") == "" {
		return text
	}
	return always(text)
}
