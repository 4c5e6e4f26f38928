package store

import (
	"fmt"

	"creel/event"
)

const (
	// dueDelivery is the one statement that says what may be claimed for a
	// destination: ready, due, and the destination neither held nor disabled
	// nor paused. A probe takes one of the oldest of a held or disabled one.
	dueDelivery = ` FROM delivery INDEXED BY delivery_due
		WHERE state = 'ready' AND destination = ?1 AND next_at <= ?2
		AND NOT EXISTS (SELECT 1 FROM destination WHERE name = ?1 AND destination.state <> 'enabled')
		ORDER BY next_at, id LIMIT ?3`
	// The one that was tried least: were it always the oldest, a delivery that
	// breaks its receiver would keep all others waiting. A probe counts a try,
	// so that they take turns, and nobody loses his place in the order.
	probeDelivery = ` FROM (SELECT id, tries, next_at FROM delivery INDEXED BY delivery_due
			WHERE state = 'ready' AND destination = ?1
			AND NOT EXISTS (SELECT 1 FROM destination WHERE name = ?1 AND destination.state = 'paused')
			ORDER BY next_at, id LIMIT 16)
		ORDER BY next_at > ?2, tries, next_at, id LIMIT ?3`

	sqlDueWeight = `SELECT (SELECT body_size FROM event WHERE seq = delivery.event)` + dueDelivery

	sqlClaimDue = `UPDATE delivery SET state = 'sending', claim = ?4, next_at = ?2,
		attempts = attempts + 1, tries = tries + 1, probe = 0
		WHERE id IN (SELECT id` + dueDelivery + `) RETURNING ` + deliveryColumns + `, delivery.message`
	sqlClaimProbe = `UPDATE delivery SET state = 'sending', claim = ?4, next_at = ?2,
		tries = tries + 1, probe = 1
		WHERE id IN (SELECT id` + probeDelivery + `) RETURNING ` + deliveryColumns + `, delivery.message`

	// The attempts of one run are a few rows in the order of their key.
	sqlDoubts = `SELECT count(*) FROM attempt WHERE delivery = ? AND run = ? AND outcome = 'unknown'`

	sqlShipmentEvent = `SELECT source, account, id, type, received_at, object, version, long_id, ` + locationColumns + ` FROM event WHERE seq = ?`
)

// claimShipments takes due deliveries of one destination, oldest due first,
// with what has to be sent. Their attempts are counted with the claim; that of
// a probe is not.
//
// A crash after the commit leaves deliveries in flight under a dead boot,
// sent or not: Recover repeats them or puts them in doubt.
func claimShipments(t *tx, now int64, c event.ShipmentClaim, token event.Claim, budget *int64) ([]event.Shipment, error) {
	query, n := sqlClaimProbe, 1
	if !c.Probe {
		query = sqlClaimDue
		var err error
		if n, err = weigh(t, now, c, budget); err != nil {
			return nil, err
		}
	}
	if n == 0 || c.Max <= 0 {
		return nil, nil
	}
	shipments := make([]event.Shipment, 0, n)
	err := t.query(query, []any{c.Destination, now, n, string(token)}, func(r row) error {
		shipments = append(shipments, event.Shipment{Delivery: deliveryOf(r), Message: r.text(16), Claim: token, Probe: c.Probe})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim deliveries to %s: %w", c.Destination, err)
	}
	shared := payloadCache{t: t}
	for i := range shipments {
		if err := fill(t, now, &shared, &shipments[i]); err != nil {
			return nil, err
		}
	}
	return shipments, nil
}

// weigh tells how many of the due deliveries fit into what is left of the
// memory of one claim; the first always does.
func weigh(t *tx, now int64, c event.ShipmentClaim, budget *int64) (n int, err error) {
	full := false
	err = t.query(sqlDueWeight, []any{c.Destination, now, min(c.Max, maxClaim)}, func(r row) error {
		if *budget -= r.int64(0); full || n > 0 && *budget < 0 {
			full = true
			return nil
		}
		n++
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("look for due deliveries to %s: %w", c.Destination, err)
	}
	return n, nil
}

// fill reads the event of a shipment and what it carried.
func fill(t *tx, now int64, shared *payloadCache, s *event.Shipment) error {
	if s.Alert != 0 {
		return fillAlert(t, now, s)
	}
	var place location
	err := t.query(sqlShipmentEvent, []any{s.EventSeq}, func(r row) error {
		s.Event = keyOf(r, 0)
		s.Type, s.ReceivedAt = r.text(3), timeOf(r, 4)
		s.Object, s.Version, s.LongID = r.text(5), r.text(6), r.text(7)
		place = locationOf(r, 8)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read event of delivery %d: %w", s.ID, err)
	}
	s.Key, s.LongKey = showKey(s.Key, s.LongKey, s.Event)
	if s.Message != "" && s.Tries > 1 {
		if s.Doubts, err = doubts(t, s.ID, s.Run); err != nil {
			return err
		}
	}
	s.Payload, err = shared.load(place)
	return err
}

// doubts counts the attempts of a run whose answer was lost.
func doubts(t *tx, delivery int64, run int) (n int, err error) {
	err = t.query(sqlDoubts, []any{delivery, run}, func(r row) error {
		n = r.int(0)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("count lost answers of delivery %d: %w", delivery, err)
	}
	return n, nil
}
