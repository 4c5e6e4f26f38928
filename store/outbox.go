package store

import (
	"fmt"
	"time"

	"creel/event"
)

const (
	sqlInsertDelivery = `INSERT INTO delivery (event, rule, key, long_key, destination, target, message, state, attempts, tries,
		created_at, next_at, claim, lane, lane_skip) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT (key, destination, target) DO NOTHING`
	sqlExisting = `SELECT delivery.event, delivery.state, delivery.long_key, event.source, event.account, event.id
		FROM delivery JOIN event ON event.seq = delivery.event
		WHERE delivery.key = ? AND delivery.destination = ? AND delivery.target = ?`
)

// outgoing is a delivery that an effect asks for.
type outgoing struct {
	key, rule   string
	destination string
	target      string // who or what at the destination
	message     string
	claimed     bool // born in the hands of the dispatcher
	lane        string
	laneSkip    bool
}

func (a *application) forward(t *tx, e event.Forward) (answer, error) {
	return a.send(t, e, outgoing{
		key: e.Key, rule: e.Rule, destination: e.Destination, claimed: e.Claimed, lane: e.Lane, laneSkip: e.LaneSkip,
	}, "")
}

// send inserts a delivery. The unique key decides; where the delivery is there
// already, it answers with what is known about it.
func (a *application) send(t *tx, e event.Effect, o outgoing, named string) (answer, error) {
	f := a.finish
	stored, storedLong, err := keyFor(t, deliveryKeys, f.Seq, a.of, o.key, o.destination, o.target)
	if err != nil {
		return answer{}, err
	}
	state, count := string(event.DeliveryReady), 0
	next, claim := any(a.at), any(nil)
	behind, err := a.isBehind(t, &o)
	if err != nil {
		return answer{}, err
	}
	switch {
	case behind:
		state, next = string(event.DeliveryWaiting), nil
	case o.claimed:
		state, count, claim = string(event.DeliverySending), 1, string(a.token)
	}
	id, inserted, err := t.insert(sqlInsertDelivery, f.Seq, o.rule, stored, storedLong, o.destination, o.target, o.message,
		state, count, count, a.at, next, claim, o.lane, o.laneSkip)
	if err != nil {
		return answer{}, fmt.Errorf("insert delivery: %w", err)
	}
	if inserted == 0 {
		if named == "" {
			named = "the delivery to " + o.destination
		}
		return a.existing(t, e, o, stored, storedLong, named)
	}
	if behind {
		_, err := keepDelivery(t, a.at, id)
		return answer{}, err
	}
	if !o.claimed {
		a.shipping = true
		return answer{}, nil
	}
	key, long := event.Fold(o.key)
	a.shipments = append(a.shipments, event.Shipment{Claim: a.token, Message: o.message, Delivery: event.Delivery{
		ID: id, Event: a.of, EventSeq: f.Seq, Rule: o.rule, Key: key, LongKey: long, Destination: o.destination, Target: o.target,
		State: event.DeliverySending, Run: 1, Attempts: 1, Tries: 1, CreatedAt: time.UnixMilli(a.at).UTC(),
	}})
	return answer{}, nil
}

// existing compares the delivery that has the key with the one that was asked
// for; the zero answer is that there is none. Key, destination and target are equal by the constraint; what is left of
// its identity is the readable key behind a hash. The rule is not compared: two
// rules may mean one operation.
func (a *application) existing(t reading, e event.Effect, o outgoing, key, long, named string) (answer, error) {
	var (
		owner earlierEffect
		state string
	)
	err := t.query(sqlExisting, []any{key, o.destination, o.target}, func(r row) error {
		owner, state = earlierEffect{seq: r.int64(0), long: r.text(2), of: keyOf(r, 3)}, r.text(1)
		return nil
	})
	if err != nil {
		return answer{}, fmt.Errorf("read existing delivery: %w", err)
	}
	if owner.seq == 0 {
		return answer{}, nil
	}
	if err := owner.sameKey(e, key, long); err != nil {
		return answer{}, err
	}
	return owner.answer(a.finish.Seq, fmt.Sprintf("%s is %s", named, state)), nil
}
