package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"creel/event"
	"creel/store"
)

const (
	// lookedAt bounds how far back the inbox is searched, in events.
	lookedAt = 20_000
	// choice is how many times the wanted number of events is collected, so that
	// there is something to choose from.
	choice = 5
	// aboutOne is how many events about one object are told at most, while there
	// are others.
	aboutOne = 4
	pageRows = 500
)

// choose picks the events that are told: of each rule the newest that it would
// be applied to, from the inbox or from its sender's sample.
func (d *drill) choose(ctx context.Context) error {
	d.opt.Progress("the events of the inbox")
	reader, err := d.inbox(ctx)
	if err != nil {
		return err
	}
	if reader != nil {
		defer reader.Close()
		if err := d.collect(ctx, reader); err != nil {
			return err
		}
	}
	for _, r := range d.rules {
		switch {
		case !r.wanted:
			continue
		case r.fetches:
			r.reason = "it asks its provider: a drill sends no request"
			r.hint = "try [rule.fetch] with a test event of the provider's own"
			continue
		}
		r.pick(d.opt.Events)
		for _, p := range r.candidates {
			d.pieces = append(d.pieces, p)
		}
	}
	// In the order of receipt, each once.
	slices.SortFunc(d.pieces, func(a, b *piece) int { return int(a.work.Seq - b.work.Seq) })
	d.pieces = slices.Compact(d.pieces)
	if reader != nil {
		if err := d.load(ctx, reader); err != nil {
			return err
		}
	}
	for _, r := range d.rules {
		if r.wanted && !r.fetches && len(r.candidates) == 0 {
			d.sample(ctx, r)
		}
	}
	return nil
}

// inbox opens the owner's database for reading; nil where there is none.
func (d *drill) inbox(ctx context.Context) (*store.Reader, error) {
	path := d.snap.Config.Database
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return store.OpenRead(ctx, path)
}

// collect goes through the inbox, the newest first, until every rule has its
// choice.
func (d *drill) collect(ctx context.Context, reader *store.Reader) error {
	page := event.Page{Limit: pageRows}
	for seen := 0; seen < lookedAt && d.hungry(nil); {
		events, err := reader.Events(ctx, event.Selector{}, page)
		if err != nil {
			return err
		}
		for i := range events {
			if err := d.consider(ctx, reader, &events[i]); err != nil {
				return err
			}
		}
		if len(events) < pageRows {
			return nil
		}
		seen += len(events)
		page.Before = events[len(events)-1].Seq
	}
	return nil
}

// hungry tells whether any rule wants more events, of those that take one.
func (d *drill) hungry(e *event.Event) bool {
	return slices.ContainsFunc(d.rules, func(r *subject) bool {
		return r.wanted && !r.fetches && len(r.candidates) < choice*d.opt.Events && (e == nil || r.matches(e))
	})
}

// consider asks the rules about one event of the inbox.
func (d *drill) consider(ctx context.Context, reader *store.Reader, e *event.Event) error {
	if !d.hungry(e) {
		return nil
	}
	work, err := reader.Work(ctx, e.Seq)
	if err != nil {
		return err
	}
	if work.Body == nil { // nothing was kept
		return nil
	}
	p, why := d.decide(ctx, work)
	for _, r := range d.rules {
		if !r.matches(e) {
			continue
		}
		switch {
		case p == nil:
			r.left[why]++
		case len(p.effects[r.name]) > 0 && len(r.candidates) < choice*d.opt.Events:
			r.candidates = append(r.candidates, p)
		}
	}
	return nil
}

// decide runs the rules on an event; nil where they would not be applied.
func (d *drill) decide(ctx context.Context, work event.Work) (p *piece, why string) {
	work.State, work.Run, work.Attempts = event.Claimed, 1, 1
	decision := d.snap.Rules.Decide(ctx, work)
	if decision.State != event.Done {
		return nil, decision.Error
	}
	p = &piece{work: work, effects: map[string][]event.Effect{}}
	p.work.Payload = event.Payload{Part: work.Part} // load reads it again: the choice may be large
	for _, e := range decision.Effects {
		p.effects[e.RuleName()] = append(p.effects[e.RuleName()], e)
	}
	return p, ""
}

// load reads what the chosen events carried.
func (d *drill) load(ctx context.Context, reader *store.Reader) error {
	for _, p := range d.pieces {
		work, err := reader.Work(ctx, p.work.Seq)
		if err != nil {
			return fmt.Errorf("read event %s: %w", p.work.Key, err)
		}
		p.work.Payload = work.Payload
	}
	return nil
}

// pick keeps n candidates: those that share an object with another one go
// first, because only they can come in another order, then the newest.
func (r *subject) pick(n int) {
	groups := map[string]int{}
	for _, p := range r.candidates {
		groups[p.object(r.name)]++
	}
	taken := map[string]int{}
	var chosen, rest []*piece
	for _, p := range r.candidates {
		object := p.object(r.name)
		if object != "" && groups[object] > 1 && taken[object] < aboutOne && len(chosen) < n {
			taken[object]++
			chosen = append(chosen, p)
			continue
		}
		rest = append(rest, p)
	}
	chosen = append(chosen, rest[:min(len(rest), n-len(chosen))]...)
	r.candidates = chosen
}
