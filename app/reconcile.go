package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"creel/admin"
	"creel/event"
	"creel/jobs"
	"creel/source"
)

// mostMissing is how many missing events an answer names.
const mostMissing = 10_000

// comparison is one comparison of a source with its sender's list.
type comparison struct {
	app    *App
	ask    admin.AskReconcile
	own    *source.Source
	lister *source.Lister
	pace   *source.Pace
	done   admin.Reconciled
	oldest time.Time // of what is missing still
	begun  bool      // the audit trail says that something is done
}

// Reconcile implements admin.Bring.
func (a *App) Reconcile(ctx context.Context, ask admin.AskReconcile) (admin.Reconciled, error) {
	own, err := a.sourceOf(ask.Source)
	if err != nil {
		return admin.Reconciled{}, err
	}
	c := &comparison{app: a, ask: ask, own: own, lister: own.Lister(),
		done: admin.Reconciled{Source: ask.Source, Lost: []source.Span{}, List: []admin.MissingEvent{}}}
	if ask.IDs != nil {
		return c.ids(ctx)
	}
	switch {
	case c.lister == nil:
		return c.done, refusal{fmt.Errorf("the source %q has no [source.reconcile], so it is not known where its sender lists events; creel reconcile --ids compares a list of ids", ask.Source)}
	case ask.Redeliver && !c.lister.Redelivers():
		return c.done, refusal{fmt.Errorf("the source %q has no reconcile.redeliver: --import brings events in", ask.Source)}
	case !a.comparing.begin(ask, a.opt.Clock()):
		return c.done, refusal{fmt.Errorf("%s is being compared already", ask.Source)}
	}
	defer a.comparing.end(ask.Source)
	c.pace = source.NewPace(a.opt.Clock, a.opt.Sleep)
	c.pace.Tell = func(read source.Reading) { a.comparing.note(ask.Source, func(r *admin.Reconciling) { r.Read = read }) }
	err = c.run(ctx)
	if far, _ := a.comparing.far(ask.Source); err != nil && far.Read.Pages > 0 {
		err = fmt.Errorf("%w; %s", err, far.Left())
	}
	return c.done, err
}

// Reconciling implements admin.Bring.
func (a *App) Reconciling(_ context.Context, name string) (admin.Reconciling, error) {
	far, ok := a.comparing.far(name)
	if !ok {
		return far, fmt.Errorf("%w: %s was not compared since the start", event.ErrNotFound, name)
	}
	return far, nil
}

// ids compares a list of ids.
func (c *comparison) ids(ctx context.Context) (admin.Reconciled, error) {
	folded := make([]string, len(c.ask.IDs))
	for i, id := range c.ask.IDs {
		folded[i], _ = event.Fold(id)
	}
	known, err := c.app.store.KnownIDs(ctx, c.ask.Source, folded)
	if err != nil {
		return c.done, err
	}
	c.done.Listed = len(folded)
	for i, id := range folded {
		if !known[id] {
			known[id] = true // named once
			c.missing(admin.MissingEvent{Key: event.Key{Source: c.ask.Source, ID: id}, ID: c.ask.IDs[i], Outcome: "missing"})
		}
	}
	return c.done, nil
}

func (c *comparison) missing(one admin.MissingEvent) {
	c.done.Missing++
	switch one.Outcome {
	case "recovered", "duplicate":
		c.done.Recovered++
	case "asked":
		c.done.Asked++
	case "failed":
		c.done.Failed++
	}
	if len(c.done.List) == mostMissing {
		c.done.More++
		return
	}
	c.done.List = append(c.done.List, one)
}

func (c *comparison) run(ctx context.Context) error {
	now := c.app.opt.Clock()
	rules := c.lister.Rules()
	asked := source.Span{From: c.ask.Since, Until: now.Add(-rules.Lag)}
	if !asked.From.Before(asked.Until) {
		return refusal{fmt.Errorf("there is nothing to compare: events younger than reconcile.lag (%s) are left for the next time, and the span begins at %s",
			rules.Lag, asked.From.UTC().Format(time.RFC3339))}
	}
	span, lost := c.lister.Reachable(asked, now)
	c.done.Span = span
	if !lost.Empty() {
		c.done.Lost = append(c.done.Lost, lost)
		c.app.opt.Log.Warn().Str(event.FieldSource, c.ask.Source).Time("from", lost.From).Time("until", lost.Until).
			Str(event.FieldHint, "look for what happened then at the sender itself: its objects, a report").
			Msg("the sender no longer lists the events of a span")
	}
	if span.Empty() {
		return nil
	}
	listing, err := c.lister.List(ctx, c.pace, span, func(page []source.Listed) error { return c.page(ctx, page) })
	c.done.Pages, c.done.Listed, c.done.Unreadable, c.done.Why = listing.Pages, listing.Listed, listing.Unreadable, listing.Why
	c.done.Lost = append(c.done.Lost, listing.Lost...)
	if err == nil && listing.Unreadable > 0 && listing.Unreadable == listing.Items {
		err = fmt.Errorf("nothing in the list is an event of the source: look at reconcile.items and reconcile.id; the first: %s", listing.Why)
	}
	if err = errors.Join(err, c.note(ctx, err)); err != nil {
		return err
	}
	if err := c.app.store.EndIncident(ctx, now, event.CauseNotCompared, c.ask.Source); err != nil {
		return err
	}
	return c.remember(ctx, now)
}

// begin writes into the audit trail that something is about to be done: a crash
// leaves no event that came in without it.
func (c *comparison) begin(ctx context.Context) error {
	what := "brings in what is missing"
	if c.ask.Redeliver {
		what = "asks again for what is missing"
	}
	if c.begun || !c.ask.Import && !c.ask.Redeliver {
		return nil
	}
	c.begun = true
	return c.app.noteBrought(ctx, event.Action{Kind: event.ActionReconcile, Actor: c.ask.Actor, Reason: c.ask.Reason,
		Target: fmt.Sprintf("%s since %s: %s", c.ask.Source, c.done.Span.From.UTC().Format(time.RFC3339), what)})
}

// note writes what was done into the audit trail, also where the list broke off
// behind it.
func (c *comparison) note(ctx context.Context, broken error) error {
	if c.done.Recovered+c.done.Asked+c.done.Failed == 0 {
		return nil
	}
	end := ""
	if broken != nil {
		end = ", broken off"
	}
	return c.app.noteBrought(context.WithoutCancel(ctx), event.Action{Kind: event.ActionReconcile, Actor: c.ask.Actor, Reason: c.ask.Reason,
		Target: fmt.Sprintf("%s: %d missing, %d recovered, %d asked for, %d failed%s", c.ask.Source, c.done.Missing, c.done.Recovered, c.done.Asked, c.done.Failed, end)})
}

// page looks for the events of one page in the inbox.
func (c *comparison) page(ctx context.Context, page []source.Listed) error {
	absent, err := c.absent(ctx, page)
	if err != nil {
		return err
	}
	if len(absent) > 0 {
		if err := c.begin(ctx); err != nil {
			return err
		}
	}
	for i := range absent {
		one := admin.MissingEvent{Key: absent[i].Key, ID: absent[i].Key.ID, Type: absent[i].Type, At: absent[i].At, Outcome: "missing"}
		switch {
		case c.ask.Redeliver:
			one.Outcome, err = "asked", c.lister.Redeliver(ctx, c.pace, &absent[i])
		case c.ask.Import:
			err = c.bring(ctx, &absent[i], &one)
		}
		if ctx.Err() != nil || errors.Is(err, event.ErrUnavailable) {
			return err
		}
		if err != nil {
			one.Outcome, one.Error = "failed", err.Error()
		}
		c.missing(one)
		c.app.comparing.note(c.ask.Source, func(r *admin.Reconciling) {
			r.Missing, r.Recovered, r.Asked = c.done.Missing, c.done.Recovered, c.done.Asked
		})
		if left := one.Outcome != "recovered" && one.Outcome != "duplicate"; left && (c.oldest.IsZero() || one.At.Before(c.oldest)) {
			c.oldest = one.At
			if one.At.IsZero() {
				c.oldest = c.done.Span.From
			}
		}
	}
	return nil
}

func (c *comparison) absent(ctx context.Context, page []source.Listed) ([]source.Listed, error) {
	var keys []event.Key
	var ids []string
	for i := range page {
		if page[i].Exact {
			keys = append(keys, page[i].Key)
		} else {
			ids = append(ids, page[i].Key.ID)
		}
	}
	known, err := c.app.store.Known(ctx, c.ask.Source, keys)
	if err != nil {
		return nil, err
	}
	knownIDs, err := c.app.store.KnownIDs(ctx, c.ask.Source, ids)
	if err != nil {
		return nil, err
	}
	var absent []source.Listed
	for i := range page {
		if _, here := known[page[i].Key]; !here && !knownIDs[page[i].Key.ID] {
			absent = append(absent, page[i])
		}
	}
	return absent, nil
}

// bring takes a missing event in through the inbox. One that came by itself
// meanwhile is a duplicate there.
func (c *comparison) bring(ctx context.Context, listed *source.Listed, one *admin.MissingEvent) error {
	request, err := c.lister.Fetch(ctx, c.pace, listed)
	if err != nil {
		return err
	}
	request.Method = http.MethodPost
	brought, err := c.own.Bring(request)
	if err != nil {
		return err
	}
	if len(brought.Items) == 0 {
		one.Outcome = "duplicate" // of the other mode: none of ours
		return nil
	}
	accepted, err := c.app.acceptBrought(ctx, broughtReceipt(c.own, event.FromReconcile, request, &brought, c.app.opt.Clock()))
	if err != nil {
		return err
	}
	one.Key, one.Outcome = accepted.Items[0].Key, "duplicate"
	if accepted.Items[0].Result == event.New {
		one.Outcome = "recovered"
	}
	return nil
}

// remember stores the gap and where the next comparison begins. A comparison of
// a shorter span than the one that events are missing from does not end that
// gap.
func (c *comparison) remember(ctx context.Context, now time.Time) error {
	last, known, err := jobs.ReadCompared(ctx, c.app.store, c.ask.Source)
	if err != nil {
		return err
	}
	missing := c.done.Missing - c.done.Recovered
	covers := last.Open.IsZero() || !c.ask.Since.After(last.Open)
	if !covers && missing == 0 {
		return nil
	}
	next := last
	if !known || !c.ask.Since.After(last.Until) {
		next.At, next.Until = now, c.done.Span.Until
	}
	switch {
	case missing == 0:
		next.Open = time.Time{}
	case covers:
		next.Open = c.oldest
	}
	if err := next.Keep(ctx, c.app.store, now, c.ask.Source); err != nil {
		return err
	}
	return c.app.store.SetGap(ctx, event.Gap{Source: c.ask.Source, At: now, Missing: missing, From: c.done.Span.From, Until: c.done.Span.Until})
}

// reconciles is the comparison that runs by itself.
func (a *App) reconciles() *jobs.Reconcile {
	return jobs.NewReconcile(jobs.ReconcileOptions{Store: a.store, Clock: a.opt.Clock, Log: a.opt.Log,
		Every: func() map[string]time.Duration {
			every := map[string]time.Duration{}
			for name, own := range a.snapshot.Load().Sources {
				if lister := own.Lister(); lister != nil {
					every[name] = lister.Rules().Every
				}
			}
			return every
		},
		Compare: a.compareByItself,
	})
}

func (a *App) compareByItself(ctx context.Context, name string, after jobs.Compared) error {
	own, err := a.sourceOf(name)
	if err != nil || own.Lister() == nil {
		return err // a reload took it away
	}
	rules := own.Lister().Rules()
	done, err := a.Reconcile(ctx, admin.AskReconcile{Source: name, Actor: "creel", Reason: "by itself",
		Since: after.Since(rules.Overlap), Import: rules.Import})
	if err != nil {
		return err
	}
	a.opt.Log.Info().Str(event.FieldSource, name).Int("unreadable", done.Unreadable).Int("listed", done.Listed).Int("missing", done.Missing).
		Int("recovered", done.Recovered).Time("from", done.Span.From).Time("until", done.Span.Until).Msg("a source was compared with its sender's list")
	return nil
}
