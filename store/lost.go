package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"creel/event"
)

const (
	sqlUnclaimEvents = `UPDATE event SET state = 'pending', claim = NULL, next_at = ?, attempts = attempts - 1
		WHERE seq IN (SELECT seq FROM event INDEXED BY event_open
			WHERE state <> 'done' AND state = 'claimed' AND claim = ?) RETURNING seq`
	sqlUnclaimDeliveries = `UPDATE delivery SET state = 'ready', claim = NULL, next_at = ?,
		attempts = attempts - (1 - probe), tries = tries - 1, probe = 0
		WHERE id IN (SELECT id FROM delivery INDEXED BY delivery_open
			WHERE state <> 'sent' AND state = 'sending' AND claim = ?) RETURNING id`
)

// lost are the claims of writes whose answer was an error though they may be
// on disk: a COMMIT that failed after its last frame was written. Nobody works
// on what they claim, and nobody but the next start would take it back.
type lost struct {
	mu     sync.Mutex
	claims []event.Claim
}

// lose remembers claims whose write has an unknown end. Where nothing was
// stored, nothing has them and they are forgotten with the next success.
func (s *Store) lose(err error, claims ...event.Claim) {
	if !errors.Is(err, event.ErrUnavailable) {
		return
	}
	s.desk.lost.mu.Lock()
	defer s.desk.lost.mu.Unlock()
	for _, claim := range claims {
		if claim != "" {
			s.desk.lost.claims = append(s.desk.lost.claims, claim)
		}
	}
}

// regain takes lost claims back, with the attempts that nobody made. It runs
// after the first write that succeeds again, beside the writer.
func (s *Store) regain() {
	s.desk.lost.mu.Lock()
	claims := s.desk.lost.claims
	s.desk.lost.claims = nil
	s.desk.lost.mu.Unlock()
	if len(claims) == 0 {
		return
	}
	now := s.options.Clock().UnixMilli()
	err := s.write(context.Background(), work, len(claims), func(t *tx) error {
		for _, claim := range claims {
			if _, err := moveAll(t, sqlUnclaimEvents, []any{now, string(claim)}, now, keepLane); err != nil {
				return fmt.Errorf("take back lost events: %w", err)
			}
			if _, err := moveAll(t, sqlUnclaimDeliveries, []any{now, string(claim)}, now, keepDelivery); err != nil {
				return fmt.Errorf("take back lost deliveries: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		s.lose(event.ErrUnavailable, claims...) // the next recovery, or the next start
		return
	}
	ring(s.desk.events)
	ring(s.desk.deliveries)
}
