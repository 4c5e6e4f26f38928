package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"creel/event"
)

// The scenes as a report names them.
const (
	sceneCopies = "five copies"
	sceneTwins  = "two ids"
	sceneOrder  = "order"
	sceneAgain  = "twice"
	sceneKills  = "kills"
)

// telling is a way to tell the pieces to a scene.
type telling func(ctx context.Context, s *scene) error

// act runs one telling on a fresh database and reads what it left.
func (d *drill) act(ctx context.Context, name string, tell telling) (out outcome, err error) {
	s, err := d.open(ctx, name)
	if err != nil {
		return out, err
	}
	err = tell(ctx, s)
	if err == nil {
		err = s.finish(ctx)
	}
	if err == nil {
		out, err = s.outcome(ctx, d.own)
	}
	return out, errors.Join(err, s.close())
}

// once tells pieces one after another, each worked off before the next comes.
// What is tried again later is not waited for: the next one may be what it
// waits for.
func once(pieces []*piece) telling {
	return func(ctx context.Context, s *scene) error {
		for _, p := range pieces {
			if err := errors.Join(s.accept(ctx, p, ""), s.step(ctx)); err != nil {
				return err
			}
		}
		return nil
	}
}

// baseline tells each event once, in the order of receipt: what the other scenes
// are compared with. Events that end dead prove nothing, because what came
// before them may not be among the chosen: they are left out.
func (d *drill) baseline(ctx context.Context) error {
	for {
		out, err := d.act(ctx, "baseline", once(d.pieces))
		if err != nil {
			return err
		}
		d.base = out
		unfinished := map[event.Key]string{}
		for _, t := range out.traces {
			if t.Table == "event" && t.Value != string(event.Done) && t.Value != string(event.Ignored) {
				unfinished[t.Event] = t.Value
			}
		}
		if len(unfinished) == 0 {
			return d.steady(ctx)
		}
		d.leave(unfinished)
		if len(d.pieces) == 0 {
			return nil
		}
	}
}

// leave leaves events out.
func (d *drill) leave(why map[event.Key]string) {
	gone := func(p *piece) bool {
		_, is := why[p.work.Key]
		return is
	}
	d.pieces = slices.DeleteFunc(d.pieces, gone)
	for _, r := range d.rules {
		for _, p := range r.candidates {
			if reason, is := why[p.work.Key]; is {
				r.left[reason]++
			}
		}
		r.candidates = slices.DeleteFunc(r.candidates, gone)
	}
}

// steady runs the baseline a second time. What differs in the owner's tables is
// the time, as SQLite tells it; what differs elsewhere is a rule that does not
// say the same twice, of which the other scenes would say nothing.
func (d *drill) steady(ctx context.Context) error {
	if len(d.own) > 0 {
		// SQLite's clock is the machine's, and CURRENT_TIMESTAMP has seconds.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(1100 * time.Millisecond):
		}
	}
	out, err := d.act(ctx, "baseline", once(d.pieces))
	if err != nil {
		return err
	}
	d.moving = movingColumns(d.base.own, out.own)
	d.found(sceneAgain, d.compare(d.base, out), func(r *subject, diff *difference) Finding {
		r.unsteady = true
		return Finding{Verdict: Failure, Reason: "the same events come to something else the second time: " + diff.String(), Hint: sayTheSame}
	})
	return nil
}

const sayTheSame = "a rule has to say the same of an event each time: look for what it takes from the clock, from chance or from outside"

// copies sends each event five times: three at once, two when it is done.
func (d *drill) copies(ctx context.Context) error {
	out, err := d.act(ctx, "copies", func(ctx context.Context, s *scene) error {
		for _, p := range d.pieces {
			if err := atOnce(3, func() error { return s.accept(ctx, p, "") }); err != nil {
				return err
			}
			if err := s.step(ctx); err != nil {
				return err
			}
			for range 2 {
				if err := errors.Join(s.accept(ctx, p, ""), s.step(ctx)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.found(sceneCopies, d.compare(d.base, out), func(r *subject, diff *difference) Finding {
		return Finding{Verdict: Failure, Reason: "five copies of one event do not leave what one leaves: " + diff.String(),
			Hint: "this is what Creel itself prevents: please report it"}
	})
	return nil
}

// atOnce calls a function n times at once.
func atOnce(n int, call func() error) error {
	failed := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { failed[i] = call() })
	}
	all.Wait()
	return errors.Join(failed...)
}

// twin is put behind the id of an event to make it another one.
const twin = "-drill"

// twins tells, after all events, each of them under a second id.
func (d *drill) twins(ctx context.Context) error {
	out, err := d.act(ctx, "twins", func(ctx context.Context, s *scene) error {
		if err := errors.Join(once(d.pieces)(ctx, s), s.finish(ctx)); err != nil {
			return err
		}
		for _, p := range d.pieces {
			if err := errors.Join(s.accept(ctx, p, twin), s.step(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.found(sceneTwins, d.compare(d.base, out), d.twiceApplied)
	d.borrowed(ctx)
	return nil
}

// borrowed looks for keys that are the event's id by another way: a second event
// about the same thing has its id in its body too.
func (d *drill) borrowed(ctx context.Context) {
	for _, p := range d.pieces {
		work := p.work
		work.Key, work.LongID = twinOf(work.Event, twin)
		id := []byte(strconv.Quote(p.work.Key.ID))
		if !bytes.Contains(work.Body, id) {
			continue
		}
		work.Body = bytes.ReplaceAll(work.Body, id, []byte(strconv.Quote(p.work.Key.ID+twin)))
		other, _ := d.decide(ctx, work)
		if other == nil {
			continue
		}
		for _, r := range d.rules {
			if key, is := moved(p.effects[r.name], other.effects[r.name]); is && r.keyed && !r.unsteady && !r.has(sceneTwins) {
				r.find(Finding{Scene: sceneTwins, Verdict: Warning, Reason: "its key is the event's own id, read from the body: " + short(key),
					Hint: "that is right where the id names the thing itself; where it names the message, take a place that names the thing"})
			}
		}
	}
}

// moved finds an effect that would be another operation for the second id.
func moved(first, second []event.Effect) (key string, is bool) {
	for i := range min(len(first), len(second)) {
		switch e := first[i].(type) {
		case event.Record, event.Grant, event.SQL:
		case event.SetState:
			if e.From == nil {
				continue
			}
		default:
			continue
		}
		if key = first[i].BusinessKey(); key != second[i].BusinessKey() {
			return key, true
		}
	}
	return "", false
}

// twiceApplied says what a second id came to.
func (d *drill) twiceApplied(r *subject, diff *difference) Finding {
	key := r.keyHint()
	switch {
	case diff.table == "event" && slices.Contains([]event.State{event.Done, event.Ignored, event.Pending}, event.State(diff.other)):
		return Finding{} // the second event itself; pending behind a dead one of its lane
	case diff.table == "event":
		return Finding{Verdict: Warning, Reason: "the second of two ids for one thing ends among the dead letters: " + short(diff.other),
			Hint: "take what differs between the two, such as {id}, out of what the rule stores; or give it a key that names the thing"}
	case diff.table == "operation" || diff.path:
		return Finding{} // what the statements did stands in the owner's tables
	case diff.table == "delivery":
		return Finding{Verdict: Warning, Reason: "would send twice when the sender gives one thing two ids: " + diff.name, Hint: key}
	case diff.table == "state" && diff.have != "" && d.versioned(r):
		return Finding{} // of two with one version the greater key stays
	}
	return Finding{Verdict: Failure, Reason: "could double-apply when the sender gives one thing two ids: " + diff.second(), Hint: key}
}

// keyHint says how the rule gets a key that does not change with the event.
func (r *subject) keyHint() string {
	const key = `key = "{source}/{account}/{body.…}/…"`
	if len(r.forward) == 0 {
		return "give the rule a key that names the thing and not the event, such as " + key
	}
	to, _ := json.Marshal(r.forward)
	text := strings.ReplaceAll(string(to), ",", ", ")
	if len(r.forward) == 1 {
		text = strings.Trim(text, "[]")
	}
	return fmt.Sprintf("a source's own forward has no key. Write a rule in the place of forward = %s in [[source]] %q:\n\n"+
		"[[rule]]\nname    = \"%s to %s\"\nmatch   = { source = %q }\n%s\nforward = { to = %s }\n\n"+
		"where the key names the thing and not the event", text, r.sources[0], r.sources[0], strings.Join(r.forward, " and "), r.sources[0],
		strings.Replace(key, "key ", "key     ", 1), text)
}

// versioned tells whether the rule's states are ordered by a version.
func (d *drill) versioned(r *subject) bool {
	return slices.ContainsFunc(r.candidates, func(p *piece) bool {
		return slices.ContainsFunc(p.effects[r.name], func(e event.Effect) bool {
			s, is := e.(event.SetState)
			return is && s.From == nil
		})
	})
}

// orders tells the events in the reverse and in random orders.
func (d *drill) orders(ctx context.Context) error {
	for i := range d.opt.Orders + 1 {
		pieces := slices.Clone(d.pieces)
		name := "reversed"
		if i == 0 {
			slices.Reverse(pieces)
		} else {
			name = fmt.Sprintf("in random order %d", i)
			d.random.Shuffle(len(pieces), func(a, b int) { pieces[a], pieces[b] = pieces[b], pieces[a] })
		}
		out, err := d.act(ctx, strings.ReplaceAll(name, " ", "-"), once(pieces))
		if err != nil {
			return err
		}
		diffs := d.compare(d.base, out)
		d.found(sceneOrder, diffs, func(r *subject, diff *difference) Finding {
			return d.ordered(r, diff, r.refusedBy(diffs), name)
		})
	}
	return nil
}

// ordered says what another order came to. Where it refused an event of the rule,
// what else differs follows from that: nothing wrong was applied.
func (d *drill) ordered(r *subject, diff *difference, refused bool, name string) Finding {
	late := d.versioned(r)
	switch {
	case diff.path || diff.table == "operation" && diff.have != "" && diff.other != "":
		return Finding{}
	case diff.table == "delivery" && late, diff.table == "operation":
		return Finding{} // what is stale sends nothing; the owner's tables say what an operation did
	case refused && diff.table != "event":
		return Finding{}
	case diff.table == "event":
		return Finding{Verdict: Warning, Reason: fmt.Sprintf("what comes early ends among the dead letters: %s (%s)", short(diff.other), name),
			Hint: `on_refuse = "retry" lets a state wait for the step before it; what a floor or a CHECK refuses waits for you`}
	}
	f := Finding{Verdict: Failure, Hint: d.orderHint(r, diff),
		Reason: fmt.Sprintf("depends on the order of arrival: %s (in the order of receipt, and %s)", diff, name)}
	if diff.table == "delivery" {
		f.Verdict = Warning
	}
	return f
}

// refusedBy tells whether any event of the rule is not done.
func (r *subject) refusedBy(diffs []difference) bool {
	return slices.ContainsFunc(diffs, func(diff difference) bool { return diff.table == "event" && r.concerned(&diff) })
}

func (d *drill) orderHint(r *subject, diff *difference) string {
	switch {
	case diff.table == "state" || diff.table == "transition":
		return `keep the state by version = "{body.…}" (a number or time that grows) instead of from, or let [rule.fetch] ask for the current one`
	case d.versioned(r):
		return "what comes after a newer state is left out as a whole: give this effect a rule of its own"
	case strings.HasPrefix(diff.table, "app_"):
		return `let the statement keep the newer one (WHERE excluded.version > version), or add to what is there; order_by = "{object}" keeps the order of receipt`
	}
	return `order_by = "{object}" keeps the order of receipt; a version or [rule.fetch] makes any order end alike`
}

// again runs the rules of every event a second time: nothing may change.
func (d *drill) again(ctx context.Context) error {
	var before outcome
	after, err := d.act(ctx, "twice", func(ctx context.Context, s *scene) error {
		err := errors.Join(once(d.pieces)(ctx, s), s.finish(ctx))
		if err != nil {
			return err
		}
		if before, err = s.outcome(ctx, d.own); err != nil {
			return err
		}
		_, err = s.store.Replay(ctx, s.clock.now(), event.Action{Actor: "drill", Selector: event.Selector{All: true}})
		return err
	})
	if err != nil {
		return err
	}
	d.found(sceneAgain, d.compare(before, after), func(r *subject, diff *difference) Finding {
		r.unsteady = true
		f := Finding{Verdict: Failure, Reason: "a second run of the rule changes what the first did: " + diff.String(), Hint: sayTheSame}
		if diff.table == "event" {
			f.Reason = "a second run of the rule ends among the dead letters: " + short(diff.other)
		}
		return f
	})
	return nil
}

// found writes what differences say about the rules that left them: of each rule
// and scene the worst, and of equal ones the first.
func (d *drill) found(scene string, diffs []difference, say func(*subject, *difference) Finding) {
	for i := range diffs {
		for _, r := range d.rules {
			if r.unsteady && scene != sceneAgain || !r.concerned(&diffs[i]) {
				continue
			}
			f := say(r, &diffs[i])
			f.Scene = scene
			r.find(f)
		}
	}
}

// concerned tells whether a difference is the rule's: its own, or that of an
// event of which nobody knows whose fault it is.
func (r *subject) concerned(diff *difference) bool {
	if len(diff.rules) > 0 {
		return slices.Contains(diff.rules, r.name)
	}
	return slices.ContainsFunc(r.candidates, func(p *piece) bool {
		key := p.work.Key.String()
		other, _ := twinOf(p.work.Event, twin)
		return diff.event == key || diff.event == other.String()
	})
}

func (r *subject) find(f Finding) {
	if f.Verdict == "" {
		return
	}
	at := slices.IndexFunc(r.findings, func(g Finding) bool { return g.Scene == f.Scene })
	switch {
	case at < 0:
		r.findings = append(r.findings, f)
	case f.Verdict == Failure && r.findings[at].Verdict != Failure:
		r.findings[at] = f
	}
}
