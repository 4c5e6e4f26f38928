package store

import (
	"errors"
	"fmt"
	"slices"

	"creel/event"
)

const (
	sqlMarkRule = `SAVEPOINT rule`
	sqlUndoRule = `ROLLBACK TO rule`
	sqlKeepRule = `RELEASE rule`
)

// application turns the effects of one finish into rows, rule by rule: the
// effects of a rule are stored together or not at all.
type application struct {
	finish *event.Finish
	at     int64
	token  event.Claim // for deliveries that are born claimed
	texts  []string    // of each effect: its fields or its message, as JSON; nil where none has any
	own    ownPart

	// What the last run came to; a rerun writes it anew.
	of        event.Key // the event's key
	shipments []event.Shipment
	shipping  bool // a delivery waits for a claim
	ordered   bool // one of the deliveries is in a lane
}

// prepare does all that needs no transaction.
func (s *Store) prepare(f *event.Finish, at int64) application {
	a := application{finish: f, at: at}
	for i, e := range f.Effects {
		if forward, is := e.(event.Forward); is {
			if forward.Claimed && a.token == "" {
				a.token = s.desk.token()
			}
		} else if text, is := writtenText(e); is {
			a.write(i, text)
		}
	}
	return a
}

// writtenText is the text that an effect is stored with.
func writtenText(e event.Effect) (text string, is bool) {
	switch e := e.(type) {
	case event.Record:
		return writeFields(e.Fields), true
	case event.SetState:
		return writeFields(e.Fields), true
	case event.Email:
		return mailText(e), true
	case event.SQL:
		return writeFields(e.Params), true
	case event.Run:
		return e.Message(), true
	}
	return "", false
}

func (a *application) write(i int, text string) {
	if a.texts == nil {
		a.texts = make([]string, len(a.finish.Effects))
	}
	a.texts[i] = text
}

// undoes tells whether a run may have to take back what it did before: what
// other effects stored, or the end of the event. A lone effect that is refused
// has stored nothing, and the event is dead instead of done.
func (a *application) undoes() bool {
	effects := a.finish.Effects
	return len(effects) > 1 || len(effects) == 1 && mayWait(effects[0])
}

// mayWait tells whether an effect may find that something has to come first.
func mayWait(e event.Effect) bool {
	switch e := e.(type) {
	case event.Forward, event.Record, event.Email, event.Run, event.File:
		return false
	case event.Grant:
		return e.Reverse != ""
	case event.SetState:
		return e.Fetchable || e.Asked != 0 || e.From != nil && e.OnRefuse != event.RefuseStale && e.OnRefuse != event.RefuseDead
	}
	return true
}

// answer is what became of one effect: it was applied, it was there before, or
// what is stored is newer.
type answer struct {
	before, stale bool
	note          string // for the verdict
}

// ruling is what became of the effects of one rule.
type ruling struct {
	rule        string
	all, before int
	stale       bool
	note        string
}

func (r *ruling) take(a answer) {
	r.all++
	if a.before {
		r.before++
	}
	r.stale = r.stale || a.stale
	if r.note == "" || a.stale {
		r.note = a.note
	}
}

// run applies the effects and returns the verdicts as they are to be stored: a
// rule that found every one of its effects there already says so, one that is
// stale as well. An objection says that the finish can not be applied; the
// caller undoes what was stored before it.
func (a *application) run(t *tx) ([]event.Verdict, error) {
	a.shipments, a.shipping = nil, false
	f := a.finish
	if len(f.Effects) == 0 {
		return f.Verdicts, nil
	}
	if err := a.name(t); err != nil {
		return nil, err
	}
	if a.own.refused != nil {
		return nil, a.own.refused
	}
	verdicts := slices.Clone(f.Verdicts)
	for i, e := range f.Effects {
		rule := e.RuleName()
		if slices.ContainsFunc(f.Effects[:i], func(e event.Effect) bool { return e.RuleName() == rule }) {
			continue
		}
		r, err := a.rule(t, i)
		if err != nil {
			return nil, err
		}
		for k := range verdicts {
			if v := &verdicts[k]; v.Rule == rule && v.Decision == event.Applied {
				r.speak(v)
			}
		}
	}
	return verdicts, nil
}

// speak puts what became of a rule into its verdict.
func (r *ruling) speak(v *event.Verdict) {
	switch {
	case r.stale:
		v.Decision, v.Reason = event.Stale, r.note
	case r.before == r.all:
		v.Decision = event.AlreadyApplied
		if v.Reason == "" {
			v.Reason = r.note
		}
	case r.before == 0 && r.note != "":
		v.Reason = r.note
	}
}

// rule applies the effects of the rule whose first effect is at place first.
// States go first: where one of them is stale nothing else was stored, so that
// there is something to undo only for a rule with several states.
func (a *application) rule(t *tx, first int) (ruling, error) {
	effects := a.finish.Effects
	r := ruling{rule: effects[first].RuleName()}
	states := 0
	for _, e := range effects[first:] {
		if _, is := e.(event.SetState); is && e.RuleName() == r.rule {
			states++
		}
	}
	if states > 1 {
		if _, err := t.exec(sqlMarkRule); err != nil {
			return r, err
		}
	}
	for _, state := range []bool{true, false} {
		if state && states == 0 {
			continue
		}
		for i := first; i < len(effects) && !r.stale; i++ {
			if _, is := effects[i].(event.SetState); is != state || effects[i].RuleName() != r.rule {
				continue
			}
			got, err := a.effect(t, i)
			if err != nil {
				return r, err
			}
			r.take(got)
		}
	}
	if states > 1 && r.stale {
		if _, err := t.exec(sqlUndoRule); err != nil {
			return r, err
		}
	}
	if states > 1 {
		if _, err := t.exec(sqlKeepRule); err != nil {
			return r, err
		}
	}
	return r, nil
}

// effect applies one effect. Each kind has a file of its own.
func (a *application) effect(t *tx, i int) (answer, error) {
	switch e := a.finish.Effects[i].(type) {
	case event.Forward:
		return a.forward(t, e)
	case event.Record:
		return a.record(t, i, e)
	case event.Grant:
		return a.grant(t, e)
	case event.SetState:
		return a.setState(t, i, e)
	case event.Email:
		return a.email(t, i, e)
	case event.SQL:
		return a.operation(t, i, e)
	case event.Run:
		return a.send(t, e, outgoing{key: e.Key, rule: e.Rule, destination: e.Destination, message: a.texts[i],
			lane: e.Lane, laneSkip: e.LaneSkip}, "the run of "+e.Destination)
	case event.File:
		return a.send(t, e, outgoing{key: e.Key, rule: e.Rule, destination: e.Destination, target: e.Path,
			lane: e.Lane, laneSkip: e.LaneSkip}, "the file "+quoted(e.Path))
	default:
		return answer{}, fmt.Errorf("event %d: no room for an effect of kind %q", a.finish.Seq, e.Kind())
	}
}

// name finds the key of the event that the finish is about.
func (a *application) name(t *tx) error {
	if a.of = a.finish.Key; a.of != (event.Key{}) {
		return nil
	}
	err := t.query(sqlKeyOf, []any{a.finish.Seq}, func(r row) error {
		a.of = keyOf(r, 0)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read event key: %w", err)
	}
	return nil
}

// objection says why a finish can not be applied: its kind is one of the
// sentinels of package event, which it wraps.
type objection struct {
	rule string
	kind error
	text string // with both values
}

func (o *objection) Error() string { return o.kind.Error() + ": " + o.text }

func (o *objection) Unwrap() error { return o.kind }

// waits tells whether the event keeps its claim: nothing is decided yet.
func (o *objection) waits() bool {
	return errors.Is(o.kind, event.ErrNotYet) || errors.Is(o.kind, event.ErrTie)
}

// detail is what an incident says of it. The two values stay with the event:
// they may be what the sender wrote, and an incident goes out as an alert.
func (o *objection) detail(of event.Key) string {
	next := "look at what is stored and at the rule, then replay or discard the event"
	if errors.Is(o.kind, event.ErrMismatch) {
		next = "give the rule a key that names one operation, then replay the event"
	}
	return fmt.Sprintf("%s: %v. creel events %s shows both values: %s.", of, o.kind, of, next)
}

// mismatch says that a business key names an operation other than the one that
// an effect asks for.
func mismatch(e event.Effect, stored, wanted string) *objection {
	return &objection{e.RuleName(), event.ErrMismatch, fmt.Sprintf("it names %s, this event asks for %s", stored, wanted)}
}

// denied says that what is stored does not allow an effect.
func denied(e event.Effect, format string, args ...any) *objection {
	return &objection{e.RuleName(), event.ErrRefused, fmt.Sprintf(format, args...)}
}
