package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"creel/event"
)

const (
	// The last try was counted as an attempt unless it was a probe.
	sqlReleaseDelivery = `UPDATE delivery SET state = 'ready', claim = NULL, next_at = ?,
		attempts = attempts - 1 + probe, tries = tries - 1, probe = 0
		WHERE id = ? AND state = 'sending' AND claim = ?`
	sqlFinishDelivery = `UPDATE delivery SET state = ?, claim = NULL, next_at = ?, finished_at = ?,
		attempts = attempts - 1 + probe + ?, probe = 0, status = ?, error = ?
		WHERE id = ? AND state = 'sending' AND claim = ?`
	sqlAttempt = `INSERT INTO attempt (delivery, run, number, spent, start, duration, status, outcome, error, answer)
		VALUES (?,?,?,?,?,?,?,?,?,?)`
	sqlDeliveryDied = `UPDATE delivery SET incident = ? WHERE id = ?`
	sqlMayRevive    = `UPDATE event SET revivable = 1 WHERE seq = (SELECT event FROM delivery WHERE id = ?)`
)

// shipping is one batch of finished deliveries with the claims of the next.
type shipping struct {
	store    *Store
	at       int64
	finishes []event.DeliveryFinish
	claims   []event.ShipmentClaim
	token    event.Claim

	// What the last run came to; a rerun writes it anew.
	errs      []error
	shipments []event.Shipment
	due       bool
}

// Ship stores what attempts came to and claims deliveries that are due, in one
// transaction: one sync for both. Each finish fails alone, in its place of the
// errors; event.ErrClaimLost says that somebody else decided. Claims go to
// destinations that are enabled, a probe to one that is held or disabled.
//
// An error is trouble of the store and says that nothing is known to be
// stored. ctx is not waited on: the answer of the writer is, which is bounded,
// so that no claim is ever left behind.
func (s *Store) Ship(ctx context.Context, now time.Time, finishes []event.DeliveryFinish, claims []event.ShipmentClaim) ([]error, []event.Shipment, error) {
	sh := &shipping{
		store: s, at: now.UnixMilli(), finishes: finishes, claims: claims,
		token: s.desk.token(), errs: make([]error, len(finishes)),
	}
	rows := 2 * len(finishes)
	for _, c := range claims {
		rows += c.Max
	}
	ctx = context.WithoutCancel(ctx)
	err := s.write(ctx, work, rows, sh.run)
	if err != nil && !errors.Is(err, event.ErrUnavailable) && !errors.Is(err, event.ErrBusy) && len(finishes) > 0 {
		err = sh.oneByOne(ctx)
	}
	if err != nil {
		s.lose(err, sh.token)
		for i := range sh.errs {
			sh.errs[i] = err
		}
		return sh.errs, nil, fmt.Errorf("ship: %w", err)
	}
	if sh.due {
		ring(s.desk.deliveries)
	}
	return sh.errs, sh.shipments, nil
}

// run does all of the batch in the writer's transaction.
//
// A crash before the commit leaves deliveries in flight under a dead boot,
// with their answers lost: Recover repeats them or puts them in doubt.
func (sh *shipping) run(t *tx) error {
	sh.due = false
	for i := range sh.finishes {
		if err := sh.finishInLane(t, i); err != nil {
			return err
		}
	}
	return sh.claim(t)
}

// oneByOne runs the batch as one unit a finish, after a statement of one of
// them failed: it hurts itself only.
func (sh *shipping) oneByOne(ctx context.Context) error {
	for i := range sh.finishes {
		err := sh.store.write(ctx, work, 2, func(t *tx) error { return sh.finishInLane(t, i) })
		if errors.Is(err, event.ErrUnavailable) || errors.Is(err, event.ErrBusy) {
			return err
		}
		if err != nil {
			sh.errs[i] = err
		}
	}
	return sh.store.write(ctx, work, len(sh.claims), sh.claim)
}

func (sh *shipping) finish(t *tx, i int) error {
	f := &sh.finishes[i]
	sh.errs[i] = nil
	if !f.Release && !event.CanMoveDelivery(event.DeliverySending, f.State) {
		sh.errs[i] = fmt.Errorf("delivery %d: it can not move from %s to %q", f.ID, event.DeliverySending, f.State)
		return nil
	}
	moved, err := sh.move(t, f)
	if err != nil {
		return fmt.Errorf("finish delivery %d: %w", f.ID, err)
	}
	if moved == 0 {
		sh.errs[i] = fmt.Errorf("delivery %d: %w", f.ID, event.ErrClaimLost)
		return nil
	}
	if f.Release {
		return landed(t, sh.at, f.ID, f.Alert)
	}
	if err := insertAttempt(t, f.ID, &f.Attempt); err != nil {
		return err
	}
	if f.Alert != 0 {
		return landed(t, sh.at, f.ID, f.Alert)
	}
	if f.State == event.DeliveryDead {
		return sh.die(t, f)
	}
	if f.Incident != nil {
		_, err = raise(t, sh.at, *f.Incident, 0)
	}
	return err
}

// move brings the delivery into the state that the finish asks for, if the
// claim is still the current one.
func (sh *shipping) move(t *tx, f *event.DeliveryFinish) (int64, error) {
	next := f.NextAt.UnixMilli()
	if f.NextAt.IsZero() {
		next = sh.at
	}
	if f.Release {
		sh.due = sh.due || next <= sh.at
		return t.exec(sqlReleaseDelivery, next, f.ID, string(f.Claim))
	}
	var due, finished any
	switch f.State {
	case event.DeliveryReady:
		due = next
		sh.due = sh.due || next <= sh.at
	case event.DeliverySent, event.DeliveryDead:
		finished = sh.at
	}
	return t.exec(sqlFinishDelivery, string(f.State), due, finished, f.Attempt.Spent,
		f.Attempt.Status, f.Attempt.Error, f.ID, string(f.Claim))
}

// die counts a dead delivery on its incident and lets a redelivery of its
// event revive it.
func (sh *shipping) die(t *tx, f *event.DeliveryFinish) error {
	if f.Incident != nil {
		id, err := raise(t, sh.at, *f.Incident, 1)
		if err != nil {
			return err
		}
		if _, err := t.exec(sqlDeliveryDied, id, f.ID); err != nil {
			return fmt.Errorf("mark death of delivery %d: %w", f.ID, err)
		}
	}
	return deliveryFailed(t, sh.at, f.ID)
}

func insertAttempt(t *tx, delivery int64, a *event.Attempt) error {
	_, err := t.exec(sqlAttempt, delivery, a.Run, a.Number, a.Spent, a.Start.UnixMilli(), a.Duration.Milliseconds(),
		a.Status, string(a.Outcome), a.Error, a.Answer)
	if err != nil {
		return fmt.Errorf("store attempt of delivery %d: %w", delivery, err)
	}
	return nil
}

func (sh *shipping) claim(t *tx) error {
	sh.shipments = nil
	budget := int64(claimBytes)
	for _, c := range sh.claims {
		claimed, err := claimShipments(t, sh.at, c, sh.token, &budget)
		if err != nil {
			return err
		}
		sh.shipments = append(sh.shipments, claimed...)
	}
	return nil
}
