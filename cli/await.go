package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"creel/admin"
	"creel/event"
	"creel/store"
)

const (
	// awaitOnce is how long one question to the server waits for the end of an
	// action.
	awaitOnce = time.Second
	// awaitPause is the wait before a server that is gone is asked again, and
	// awaitLimit how long it may be gone: a supervisor starts it again.
	awaitPause = 200 * time.Millisecond
	awaitLimit = time.Minute
)

// actThere has an action done by the server, and waits for its end. Where the
// server ends before it has said which action it is, the audit trail knows
// whether it began.
func (f *frame) actThere(ctx context.Context, s *setup, client *admin.Client, action event.Action) (event.Action, error) {
	if !isBulk(action.Kind) {
		return client.Act(ctx, action, awaitOnce)
	}
	newest, err := f.newest(ctx, s)
	if err != nil {
		return action, err
	}
	done, err := client.Act(ctx, action, awaitOnce)
	for gone := f.now(); errors.Is(err, admin.ErrLost) && f.now().Sub(gone) < awaitLimit; {
		if err := rest(ctx, awaitPause); err != nil {
			return action, err
		}
		if done, err = f.begun(ctx, s, action, newest); errors.Is(err, event.ErrNotFound) {
			done, err = client.Act(ctx, action, awaitOnce)
		}
	}
	if err != nil || !done.Finished.IsZero() {
		return done, err
	}
	return f.await(ctx, client, done, !done.At.Before(action.At.Truncate(time.Millisecond)))
}

// isBulk tells whether an action is on a selection, and may take long.
func isBulk(kind event.ActionKind) bool {
	return kind == event.ActionReplay || kind == event.ActionDiscard || kind == event.ActionLaneSkip
}

// newest is the number of the last action in the audit trail; 0 where there is
// none.
func (f *frame) newest(ctx context.Context, s *setup) (int64, error) {
	reader, err := store.OpenRead(ctx, s.config.Database)
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	last, err := reader.Actions(ctx, event.Page{Limit: 1})
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return last[0].ID, nil
}

// begun finds the action that was asked for in the audit trail, behind one that
// was there before; event.ErrNotFound.
func (f *frame) begun(ctx context.Context, s *setup, action event.Action, newest int64) (event.Action, error) {
	reader, err := store.OpenRead(ctx, s.config.Database)
	if err != nil {
		return action, err
	}
	defer reader.Close()
	list, err := reader.Actions(ctx, event.Page{Limit: pageRows})
	if err != nil {
		return action, err
	}
	words := func(a event.Action) string {
		a.ID, a.At, a.Selected, a.Done, a.Refused, a.Finished = 0, time.Time{}, 0, 0, 0, time.Time{}
		text, _ := json.Marshal(a) // what came as JSON can be written as such
		return string(text)
	}
	for _, a := range list {
		if a.ID > newest && words(a) == words(action) {
			return a, nil
		}
	}
	return action, event.ErrNotFound
}

// await waits for the end of an action that goes on in the server and tells how
// far it is. The server may end and start again meanwhile: the action goes on
// then. So it does when nobody follows it.
func (f *frame) await(ctx context.Context, client *admin.Client, a event.Action, ours bool) (event.Action, error) {
	if ours {
		f.progress("It goes on as action %d, also when this command ends: creel audit %d, or the same command again, tells how far it is.", a.ID, a.ID)
	} else {
		f.progress("This is under way already, as action %d of %s. It goes on when this command ends.", a.ID, a.Actor)
	}
	told, gone := f.now(), time.Time{}
	for a.Finished.IsZero() {
		next, err := client.AwaitAction(ctx, a.ID, awaitOnce)
		now := f.now()
		switch {
		case err == nil:
			a, gone = next, time.Time{}
		case !errors.Is(err, admin.ErrLost) || ctx.Err() != nil:
			return a, err
		case gone.IsZero():
			gone = now
			f.progress("The server has stopped after %s. This waits until it starts again.", farAs(a))
		case now.Sub(gone) > awaitLimit:
			return a, &exit{code: exitPartly, err: fmt.Errorf("no server runs: action %d has done %s and goes on when one starts", a.ID, farAs(a)),
				hint: "creel serve"}
		}
		if now.Sub(told) >= progressEvery && gone.IsZero() {
			told = now
			f.progress("%s so far", farAs(a))
		}
		if !gone.IsZero() {
			if err := rest(ctx, awaitPause); err != nil {
				return a, err
			}
		}
	}
	return a, nil
}

// farAs is how far an action is, in words.
func farAs(a event.Action) string { return fmt.Sprintf("%d of %d", a.Done+a.Refused, a.Selected) }

// progress tells people how far something is.
func (f *frame) progress(format string, args ...any) {
	if !f.asJSON {
		fmt.Fprintln(f.err, printable(fmt.Sprintf(format, args...)))
	}
}

// rest waits, or returns the context's error.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
