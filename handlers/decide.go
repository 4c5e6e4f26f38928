package handlers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"creel/event"
	"creel/path"
)

// Decision is what the rules say about one event.
type Decision struct {
	// State is event.Done, event.Ignored or event.Dead, or event.Pending where
	// a later attempt may go better.
	State event.State
	// Error is why it is not done.
	Error string
	// Rule is the rule that Error speaks of, "" where it is none.
	Rule string
	// Interrupted says that the context was cancelled before the rules came to
	// an end: nothing was decided and the attempt should not count.
	Interrupted bool
	// Verdicts has one row for each rule that matched, or one without a rule.
	// Their times are left to whoever stores them.
	Verdicts []event.Verdict
	// Fetch is what has to be asked for before anything can be decided: the
	// state is Pending, and DecideFetched goes on with the answers.
	Fetch []FetchRequest
	// Effects is what is to be done. It is empty unless the state is Done: the
	// rules of an event apply together or not at all.
	Effects []event.Effect
}

// ruling is what one rule came to.
type ruling struct {
	rule    string
	skipped bool
	effects []event.Effect
	err     error
}

// Decide runs the rules on a claimed event. It never panics, changes nothing
// outside, and ends at the worker's timeout even where a Go handler does not.
func (rs *Rules) Decide(ctx context.Context, work event.Work) Decision {
	return rs.decide(ctx, work, given{})
}

func (rs *Rules) decide(ctx context.Context, work event.Work, g given) Decision {
	return rs.discreet(work, rs.weigh(ctx, work, g))
}

// discreet takes out of what is said about an event what its source hides.
func (rs *Rules) discreet(work event.Work, d Decision) Decision {
	said := d.Error != ""
	for i := range d.Verdicts {
		said = said || d.Verdicts[i].Reason != ""
	}
	if !said || rs.hidden == nil {
		return d
	}
	if texts := rs.hidden(work.Key.Source, work.Payload); len(texts) > 0 {
		d.Error = path.TakeOut(d.Error, texts)
		for i := range d.Verdicts {
			d.Verdicts[i].Reason = path.TakeOut(d.Verdicts[i].Reason, texts)
		}
	}
	return d
}

func (rs *Rules) weigh(ctx context.Context, work event.Work, g given) Decision {
	s := &subject{work: work, doc: path.NewDocument(work.Payload)}
	d := decider{work: work}
	if err := rs.tenant(s); err != nil {
		return d.alone(event.Dead, event.Failed, err.Error())
	}
	var rulings []ruling
	for _, r := range rs.rules {
		if !r.matches(&work.Event) {
			continue
		}
		if rulings == nil {
			if rs.timeout > 0 {
				timed, cancel := context.WithTimeoutCause(ctx, rs.timeout, errTimeout)
				defer cancel()
				ctx = timed
			}
			if requests := rs.waiting(ctx, s, g); len(requests) > 0 {
				return Decision{State: event.Pending, Error: "waits for the current object", Rule: requests[0].Rule, Fetch: requests}
			}
		}
		rulings = append(rulings, rs.apply(ctx, r, s, g))
	}
	if len(rulings) == 0 {
		return d.alone(event.Ignored, event.Skipped, noRule)
	}
	return d.together(rulings)
}

// Unmatched tells, from its source and type alone, that an event can only end
// as ignored, and why. Nothing of its body has been looked at, so that it may
// be asked before the event is stored.
func (rs *Rules) Unmatched(key event.Key, kind string) (reason string, ok bool) {
	if _, mapped := rs.accounts[key.Source]; mapped {
		return "", false // an unknown account is dead, whatever its type
	}
	e := event.Event{Key: key, Type: kind}
	for _, r := range rs.rules {
		if r.matches(&e) {
			return "", false
		}
	}
	return noRule, true
}

// MatchesSource tells whether any rule takes events of a source.
func (rs *Rules) MatchesSource(source string) bool {
	for _, r := range rs.rules {
		if event.MatchAny(r.sources, source) {
			return true
		}
	}
	return false
}

// noRule is why an event that no rule names is ignored. It stands in every such
// row, beside the type that it is about, so it is short.
const noRule = "no rule"

var errTimeout = errors.New("the rules took longer than the worker's timeout")

// tenant maps the account, where the source has a map.
func (rs *Rules) tenant(s *subject) error {
	accounts, mapped := rs.accounts[s.work.Key.Source]
	if !mapped {
		return nil
	}
	var known bool
	if s.tenant, known = accounts[s.work.Key.Account]; !known {
		return fmt.Errorf("the account %s is not in the accounts of the source %s", strconv.QuoteToGraphic(clip(s.work.Key.Account, 100)), s.work.Key.Source)
	}
	return nil
}

// apply runs one rule. A panic of our own is a failure like that of a handler.
func (rs *Rules) apply(ctx context.Context, r *rule, s *subject, g given) (out ruling) {
	defer func() {
		if value := recover(); value != nil {
			out = ruling{rule: r.name, err: &handlerError{err: rs.caught(r, s.work.Key, value)}}
		}
	}()
	out.rule = r.name
	if r.wanted(ctx, s, g) { // and it could not be asked for
		_, err := r.fetch.ask(s)
		out.err = fmt.Errorf("fetch: url: %w", err)
		return out
	}
	lane, laneErr := r.laneOf(s) // of what was received: that is where the event waited
	s, fetched, err := r.current(s, g)
	if err != nil {
		out.err = fmt.Errorf("fetch: %w", err)
		return out
	}
	if r.when != nil {
		held, err := r.when.holds(ctx, s)
		if err != nil {
			out.err = fmt.Errorf("when: %w", err)
			return out
		}
		if !held {
			out.skipped = true
			return out
		}
	}
	if laneErr != nil {
		out.err = fmt.Errorf("order_by: %w", laneErr)
		return out
	}
	out.effects, out.err = rs.effects(ctx, r, s, operation{rule: r.name, lane: lane, laneSkip: r.skip, fetched: fetched})
	return out
}

// effects makes all effects of a rule, or none.
func (rs *Rules) effects(ctx context.Context, r *rule, s *subject, o operation) ([]event.Effect, error) {
	var err error
	if o.key, err = r.businessKey(s); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	var out []event.Effect
	for _, m := range r.makers {
		effects, err := m.make(ctx, s, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.word(), err)
		}
		out = append(out, effects...)
	}
	if r.goName != "" {
		effects, err := rs.invoke(ctx, r, s, o)
		if err != nil {
			return nil, fmt.Errorf("go: %w", err)
		}
		out = append(out, effects...)
	}
	return out, nil
}

// decider puts the rulings on one event together.
type decider struct{ work event.Work }

func (d decider) verdict(rule string, decision event.Decision, reason string) event.Verdict {
	return event.Verdict{Seq: d.work.Seq, Run: d.work.Run, Rule: rule, Decision: decision, Reason: reason}
}

func (d decider) alone(state event.State, decision event.Decision, reason string) Decision {
	return Decision{State: state, Error: reason, Verdicts: []event.Verdict{d.verdict("", decision, reason)}}
}

func (d decider) together(rulings []ruling) Decision {
	failed := failure(rulings)
	if failed != nil && interrupted(failed.err) {
		return Decision{State: event.Pending, Interrupted: true, Error: "interrupted", Rule: failed.rule}
	}
	out := Decision{State: event.Ignored, Error: "no rule's condition holds"}
	for _, r := range rulings {
		switch {
		case r.err != nil && transient(r.err):
			out.Verdicts = append(out.Verdicts, d.verdict(r.rule, event.Later, reasonOf(r.err)))
		case r.err != nil:
			out.Verdicts = append(out.Verdicts, d.verdict(r.rule, event.Failed, reasonOf(r.err)))
		case r.skipped:
			out.Verdicts = append(out.Verdicts, d.verdict(r.rule, event.Skipped, "its condition does not hold"))
		case failed != nil:
			out.Verdicts = append(out.Verdicts, d.verdict(r.rule, event.Later, "the rules of an event apply together, and "+failed.rule+" failed"))
		default:
			out.State, out.Error = event.Done, ""
			out.Verdicts = append(out.Verdicts, d.verdict(r.rule, event.Applied, ""))
			out.Effects = append(out.Effects, r.effects...)
		}
	}
	if failed != nil {
		out.State, out.Rule = event.Dead, failed.rule
		out.Error = failed.rule + ": " + reasonOf(failed.err)
		if transient(failed.err) {
			out.State = event.Pending
		}
	}
	return out
}

// failure picks the ruling that decides: the first that no retry can mend,
// else the first that failed at all.
func failure(rulings []ruling) *ruling {
	var first *ruling
	for i := range rulings {
		r := &rulings[i]
		switch {
		case r.err == nil:
		case interrupted(r.err) || !transient(r.err):
			return r
		case first == nil:
			first = r
		}
	}
	return first
}

// interrupted tells whether the server asked to stop.
func interrupted(err error) bool { return errors.Is(err, errInterrupted) }

// transient tells whether a later attempt may go better.
func transient(err error) bool {
	var h *handlerError
	return errors.Is(err, errTimeout) || errors.Is(err, errInterrupted) || (errors.As(err, &h) && !h.permanent)
}

// maxReason bounds what is stored of an error, in bytes.
const maxReason = 1024

func reasonOf(err error) string { return clip(err.Error(), maxReason) }

// clip makes a text valid and short.
func clip(text string, size int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size], "") + "…"
}
