package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"creel/admin"
	"creel/event"
	"creel/receiver"
	"creel/source"
)

// Rejects implements admin.Intake.
func (a *App) Rejects(_ context.Context, filter admin.RejectFilter) ([]admin.Reject, error) {
	list := []admin.Reject{}
	for _, entry := range a.receiver.Rejected(0) {
		if filter.Source != "" && entry.Source != filter.Source || filter.Cause != "" && entry.Cause != filter.Cause {
			continue
		}
		if list = append(list, rejectOf(&entry)); len(list) == filter.Limit {
			break
		}
	}
	return list, nil
}

func rejectOf(entry *receiver.Rejected) admin.Reject {
	accepted := entry.Accepted
	if accepted == nil {
		accepted = []event.Key{}
	}
	return admin.Reject{ID: entry.ID, At: entry.At.UTC(), Source: entry.Source, Cause: entry.Cause, Detail: entry.Detail,
		Peer: entry.Peer, Size: entry.BodySize, Kept: len(entry.Body), Accepted: accepted}
}

// rejected finds a request in the drawer.
func (a *App) rejected(id int64) (receiver.Rejected, error) {
	entry, ok := a.receiver.RejectedByID(id)
	if !ok {
		return entry, fmt.Errorf("%w: no request %d is in the drawer (any more)", event.ErrNotFound, id)
	}
	return entry, nil
}

// Reject implements admin.Intake.
func (a *App) Reject(_ context.Context, id int64) (admin.RejectDetail, error) {
	entry, err := a.rejected(id)
	if err != nil {
		return admin.RejectDetail{}, err
	}
	snapshot := a.snapshot.Load()
	request := &source.Request{Method: entry.Method, Query: entry.Query, Header: source.ReadHeaderLines(entry.Header), Body: entry.Body}
	snapshot.redact.Request(entry.Source, request)
	shown := snapshot.Sources[entry.Source].Conceal(request)
	var header strings.Builder
	for _, name := range slices.Sorted(maps.Keys(shown.Header)) {
		for _, line := range shown.Header[name] {
			header.WriteString(name + ": " + line + "\n")
		}
	}
	return admin.RejectDetail{Reject: rejectOf(&entry), Method: shown.Method, Query: shown.Query, Header: header.String(), Body: shown.Body}, nil
}

// Capture implements admin.Intake.
func (a *App) Capture(_ context.Context, id int64) ([]byte, error) {
	entry, err := a.rejected(id)
	if err != nil {
		return nil, err
	}
	if entry.Cut() {
		return nil, refusal{errors.New(entry.Missing())}
	}
	request := &source.Request{Method: entry.Method, Query: entry.Query, Header: source.ReadHeaderLines(entry.Header), Body: entry.Body}
	a.snapshot.Load().redact.Request(entry.Source, request)
	if entry.Host != "" {
		request.Header.Set("Host", entry.Host)
	}
	return source.WriteCapture(request, "/in/"+entry.Source), nil
}

// VerifyReject implements admin.Intake.
func (a *App) VerifyReject(_ context.Context, id int64, at time.Time) (source.Diagnosis, error) {
	entry, err := a.rejected(id)
	if err != nil {
		return source.Diagnosis{}, err
	}
	if entry.Cut() {
		return source.Diagnosis{}, refusal{errors.New(entry.Missing())}
	}
	request := entry.Request()
	if entry.Host != "" {
		request.Header.Set("Host", entry.Host)
	}
	if at.IsZero() {
		at = entry.At
	}
	return a.snapshot.Load().Diagnose(entry.Source, request, at.UTC())
}

// VerifyRequest implements admin.Intake.
func (a *App) VerifyRequest(_ context.Context, ask admin.VerifyRequest) (source.Diagnosis, error) {
	at := ask.At
	if at.IsZero() {
		at = a.opt.Clock()
	}
	request := &source.Request{Method: ask.Method, Query: ask.Query, Header: ask.Header, Body: ask.Body}
	return a.snapshot.Load().Diagnose(ask.Source, request, at.UTC())
}

// Diagnose says why a request verifies as one of a source, or does not.
func (s *Snapshot) Diagnose(name string, request *source.Request, at time.Time) (source.Diagnosis, error) {
	own := s.Sources[name]
	if own == nil {
		return source.Diagnosis{}, fmt.Errorf("%w: the configuration in force has no source %q", event.ErrNotFound, name)
	}
	var others []*source.Source
	for _, other := range slices.Sorted(maps.Keys(s.Sources)) {
		if s.Sources[other] != nil {
			others = append(others, s.Sources[other])
		}
	}
	return own.Diagnose(request, at, others), nil
}

// RetryRejects implements admin.Intake. Each that verifies is an action of its
// own in the audit trail.
func (a *App) RetryRejects(ctx context.Context, ask admin.RetryRejects) ([]admin.RetriedReject, error) {
	if err := sound(event.Action{Reason: ask.Reason}); err != nil {
		return nil, err
	}
	var ids []int64
	if ask.ID > 0 {
		ids = []int64{ask.ID}
	} else {
		for _, entry := range a.receiver.Rejected(0) {
			if entry.Source == ask.Source && len(entry.Accepted) == 0 {
				ids = append(ids, entry.ID)
			}
		}
		slices.Reverse(ids) // in the order in which they came
	}
	list := []admin.RetriedReject{}
	for _, id := range ids {
		retried, err := a.retryReject(ctx, id, ask)
		if err != nil && ask.ID == 0 && len(list) > 0 {
			retried.Outcome, retried.Detail = "failed", err.Error()
			return append(list, retried), nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, retried)
	}
	return list, nil
}

func (a *App) retryReject(ctx context.Context, id int64, ask admin.RetryRejects) (admin.RetriedReject, error) {
	entry, err := a.rejected(id)
	if err != nil {
		return admin.RetriedReject{}, err
	}
	action := event.Action{Kind: event.ActionReadmit, Actor: ask.Actor, Reason: ask.Reason, At: a.opt.Clock(),
		Target: fmt.Sprintf("request %d of %s, %s", id, entry.Source, entry.At.UTC().Format(time.RFC3339))}
	again, err := a.receiver.Readmit(ctx, id, func(ctx context.Context, receipt *event.Receipt) (accepted event.Accepted, err error) {
		a.snapshot.Load().Prepare(ctx, receipt)
		accepted, action, err = a.store.AcceptFor(ctx, receipt, action)
		if err == nil {
			a.countReceipt(receipt, accepted)
			a.tellAccepted(accepted)
		}
		return accepted, err
	})
	retried := admin.RetriedReject{Reject: rejectOf(&entry), Outcome: string(again.Outcome), Stored: again.Outcome.Stored(), Events: []event.Key{}}
	if err != nil {
		return retried, err
	}
	retried.Cause, retried.Detail, retried.Action = again.Cause, again.Detail, action.ID
	for _, item := range again.Events {
		retried.Events = append(retried.Events, item.Key)
	}
	if again.Outcome == receiver.ReadmittedBefore {
		retried.Events = append(retried.Events, entry.Accepted...)
	}
	if action.ID > 0 {
		a.tellActed(action)
		a.opt.Log.Info().Str(event.FieldAction, string(action.Kind)).Str(event.FieldActor, action.Actor).
			Int(event.FieldCount, action.Done).Msg("operator action")
	}
	return retried, nil
}
