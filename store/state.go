package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"creel/event"
)

const (
	sqlCurrentState = `SELECT state, fields, version, rank, tie, transition, event, long_object FROM state WHERE object = ?`
	sqlTransition   = `INSERT INTO transition (object, event, rule, key, long_key, from_state, state, version, fields, previous, at)
		VALUES (?,?,?,?,?,?,?,?,?,?,?)`
	sqlNextTransition = `SELECT 1 + ifnull(max(id), 0) FROM transition`
	// The guard names the transition that the decision was made on.
	sqlSetState = `INSERT INTO state (object, long_object, state, fields, version, rank, tie, transition, event, at)
		VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (object) DO UPDATE
		SET state = excluded.state, fields = excluded.fields, version = excluded.version, rank = excluded.rank, tie = excluded.tie,
			transition = excluded.transition, event = excluded.event, at = excluded.at
		WHERE state.transition = ?`
	sqlExistingTransition = `SELECT transition.event, transition.long_key, transition.object, transition.state, transition.fields,
		event.source, event.account, event.id
		FROM transition JOIN event ON event.seq = transition.event WHERE transition.key = ?`
)

// version orders the states of an object: its text, its rank, and the key of
// the event that brought it, which decides between two with one rank.
type version struct{ text, rank, tie string }

// current is the state of an object; the zero value is that of one that has
// none.
type current struct {
	state, fields string
	version
	transition int64
	event      int64
	long       string // readable object, where it is stored as a hash
}

// change is a new state of an object on its way into the tables.
type change struct {
	object, long string
	from         current
	key          any // of a compare-and-set; NULL for the others
	longKey      string
	keep         version
	note         string // for the verdict
}

// NextTransition is the number of the next transition of any object: who asks an
// owner of one afterwards tells by it what the answer can not know.
func (r *Reader) NextTransition(ctx context.Context) (int64, error) {
	var next int64
	if err := r.row(ctx, sqlNextTransition, nil, &next); err != nil {
		return 0, fmt.Errorf("look at the transitions: %w", err)
	}
	return next, nil
}

// setState gives an object another state where what is stored allows it.
func (a *application) setState(t *tx, i int, e event.SetState) (answer, error) {
	got, c, err := a.judge(t, t.c.spoken, i, e)
	if err != nil || c == nil {
		return got, err
	}
	return answer{note: c.note}, a.change(t, i, e, c)
}

// judge decides from what is stored: a change, or an answer where there is none
// to be made.
func (a *application) judge(t reading, known spoken, i int, e event.SetState) (answer, *change, error) {
	if e.To == "" || e.Object == "" {
		return answer{}, nil, denied(e, "a state needs an object and a name, it has object %s and state %s", quoted(e.Object), quoted(e.To))
	}
	c := &change{}
	c.object, c.long = event.Fold(e.Object)
	var err error
	if c.from, err = currentState(t, c.object); err != nil {
		return answer{}, nil, err
	}
	if c.from.transition != 0 && c.from.long != c.long {
		return answer{}, nil, mismatch(e, described(c.object, c.from.long), described(c.object, c.long))
	}
	var got answer
	var changes bool
	switch {
	case e.Fetched:
		got, changes, err = a.fetched(i, e, c)
	case e.From != nil:
		got, changes, err = a.compareAndSet(t, known, i, e, c)
	default:
		got, changes, err = a.newer(i, e, c)
	}
	if err != nil || !changes {
		return got, nil, err
	}
	return got, c, nil
}

func currentState(t reading, object string) (now current, err error) {
	err = t.query(sqlCurrentState, []any{object}, func(r row) error {
		now = current{
			state: r.text(0), fields: r.text(1), version: version{r.text(2), r.text(3), r.text(4)},
			transition: r.int64(5), event: r.int64(6), long: r.text(7),
		}
		return nil
	})
	if err != nil {
		return now, fmt.Errorf("read the state of an object: %w", err)
	}
	return now, nil
}

// ranked reads the version of an effect.
func (a *application) ranked(e event.SetState) (version, error) {
	rank, ok := event.Rank(e.Version)
	if !ok {
		return version{}, denied(e, "the version %s orders nothing: it has to be a number or a time in RFC 3339", quoted(e.Version))
	}
	return version{e.Version, rank, a.of.String()}, nil
}

// newer applies a state whose version is greater than the stored one. Of two
// events with one version the greater key stays, whichever came first.
func (a *application) newer(i int, e event.SetState, c *change) (got answer, changes bool, err error) {
	now := &c.from
	if c.keep, err = a.ranked(e); err != nil {
		return got, false, err
	}
	switch order := strings.Compare(c.keep.rank, now.rank); {
	case order < 0:
		return answer{stale: true, note: fmt.Sprintf("%s has version %s, this event has %s", e.Object, now.text, e.Version)}, false, nil
	case order == 0 && now.tie == c.keep.tie:
		got, err = a.sameVersion(i, e, now)
		return got, false, err
	case order == 0 && e.Fetchable:
		return got, false, &objection{e.Rule, event.ErrTie, fmt.Sprintf("%s has version %s by %s already", e.Object, now.text, now.tie)}
	case order == 0 && c.keep.tie < now.tie:
		return answer{stale: true, note: fmt.Sprintf("tie: %s has the same version and the greater key", now.tie)}, false, nil
	case order == 0:
		c.note = fmt.Sprintf("tie: %s has the same version and the lesser key", now.tie)
	}
	return got, true, nil
}

// sameVersion is a run of the event that brought the stored version.
func (a *application) sameVersion(i int, e event.SetState, now *current) (answer, error) {
	if now.event != a.finish.Seq { // a compare-and-set went on from it
		return answer{before: true, note: fmt.Sprintf("version %s of %s is applied", e.Version, e.Object)}, nil
	}
	if have, want := differing(now.state, now.fields, e.To, a.texts[i]); have != want {
		return answer{}, mismatch(e, fmt.Sprintf("version %s of %s with %s", e.Version, e.Object, have), want)
	}
	return answer{before: true, note: fmt.Sprintf("%s is %s", e.Object, now.state)}, nil
}

// differing compares a stored state with one that is asked for.
func differing(state, fields, to, wanted string) (have, want string) {
	if state != to {
		return "state " + quoted(state), "state " + quoted(to)
	}
	return unlike(fields, wanted)
}

// fetched applies what the object's owner said: it was asked while nothing else
// of its lane was under way. An answer whose own version is below the stored
// one comes from a copy that lags behind, and is stale. Others may change the
// object too: what they did since it was asked for may not be in the answer,
// unless its own version says so.
func (a *application) fetched(i int, e event.SetState, c *change) (got answer, changes bool, err error) {
	now := &c.from
	c.keep = now.version
	if e.Version != "" {
		own, err := a.ranked(e)
		if err != nil {
			return got, false, err
		}
		if own.rank < now.rank {
			return answer{stale: true, note: fmt.Sprintf("%s has version %s, its owner answered with %s", e.Object, now.text, e.Version)}, false, nil
		}
		if own.rank > now.rank || own.rank == now.rank && own.tie > now.tie {
			c.keep = own
		}
	}
	have, want := differing(now.state, now.fields, e.To, a.texts[i])
	switch {
	case now.transition != 0 && have == want && c.keep.rank == now.rank:
		return answer{before: true, note: fmt.Sprintf("%s is %s", e.Object, now.state)}, false, nil
	case c.keep.rank == now.rank && e.Asked != 0 && now.transition >= e.Asked && now.event != a.finish.Seq:
		return got, false, &objection{e.Rule, event.ErrOvertaken, fmt.Sprintf("%s came to %s meanwhile", e.Object, stateName(now.state))}
	}
	return got, true, nil
}

// compareAndSet leaves one of the expected states. Its business key is applied
// once, whatever state the object has by now.
func (a *application) compareAndSet(t reading, known spoken, i int, e event.SetState, c *change) (got answer, changes bool, err error) {
	key, long, err := known.keyFor(t, transitionKeys, a.finish.Seq, a.of, e.Key)
	if err != nil {
		return got, false, err
	}
	var owner earlierEffect
	var object, state, fields string
	err = t.query(sqlExistingTransition, []any{key}, func(r row) error {
		owner = earlierEffect{seq: r.int64(0), long: r.text(1), of: keyOf(r, 5)}
		object, state, fields = r.text(2), r.text(3), r.text(4)
		return nil
	})
	if err != nil {
		return got, false, fmt.Errorf("look for a transition: %w", err)
	}
	switch {
	case owner.seq != 0:
		if err := owner.sameKey(e, key, long); err != nil {
			return got, false, err
		}
		if object != c.object {
			return got, false, mismatch(e, "a state of "+object, "one of "+c.object)
		}
		if have, want := differing(state, fields, e.To, a.texts[i]); have != want {
			return got, false, mismatch(e, fmt.Sprintf("%s of %s", have, e.Object), want)
		}
		return owner.answer(a.finish.Seq, fmt.Sprintf("%s came to %s", e.Object, state)), false, nil
	case !slices.Contains(e.From, c.from.state):
		got, err = a.unexpected(e, c.from.state)
		return got, false, err
	}
	c.key, c.longKey, c.keep = key, long, c.from.version
	return got, true, nil
}

// unexpected is a compare-and-set that finds another state than it may leave.
func (a *application) unexpected(e event.SetState, state string) (answer, error) {
	text := fmt.Sprintf("%s is %s, expected %s", e.Object, stateName(state), stateNames(e.From))
	switch e.OnRefuse {
	case event.RefuseStale:
		return answer{stale: true, note: text}, nil
	case event.RefuseDead:
		return answer{}, denied(e, "%s", text)
	}
	return answer{}, &objection{e.Rule, event.ErrNotYet, text}
}

func stateNames(states []string) string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = stateName(s)
	}
	return strings.Join(names, " or ")
}

// stateName is a state as a sentence has it; "" is an object without one.
func stateName(state string) string {
	if state == "" {
		return "without a state"
	}
	return quoted(state)
}

// change writes the transition and the state that it leads to.
func (a *application) change(t *tx, i int, e event.SetState, c *change) error {
	id, _, err := t.insert(sqlTransition, c.object, a.finish.Seq, e.Rule, c.key, c.longKey, c.from.state, e.To, e.Version,
		a.texts[i], orNull(c.from.transition), a.at)
	if err != nil {
		return fmt.Errorf("insert transition: %w", err)
	}
	changed, err := t.exec(sqlSetState, c.object, c.long, e.To, a.texts[i], c.keep.text, c.keep.rank, c.keep.tie, id,
		a.finish.Seq, a.at, c.from.transition)
	if err != nil {
		return fmt.Errorf("set the state of an object: %w", err)
	}
	if changed != 1 {
		return fmt.Errorf("the state of %s changed meanwhile", e.Object)
	}
	return nil
}
