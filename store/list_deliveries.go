package store

import (
	"context"
	"fmt"
	"strings"

	"creel/event"
)

// DeliveryFilter narrows a list of deliveries. Empty fields take everything.
type DeliveryFilter struct {
	Event       *event.Key
	Source      string
	Destination string
	Key         string // business key
	State       event.DeliveryState
	Error       string // part of the error text
}

const deliveryWithKey = `SELECT ` + deliveryColumns + `, event.source, event.account, event.id FROM delivery `

// Deliveries lists deliveries, newest first. Page.Before is a delivery's id.
func (r *Reader) Deliveries(ctx context.Context, f DeliveryFilter, page event.Page) ([]event.Delivery, error) {
	before, limit := bounds(page)
	index, where := "", "1"
	if f.State != "" && f.State != event.DeliverySent {
		index = "INDEXED BY delivery_open"
		where = "delivery.state <> 'sent' AND delivery.state = " + literal(string(f.State))
	} else if f.State != "" {
		where = "delivery.state = 'sent'"
	}
	conditions, args, err := r.deliveryConditions(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	query := deliveryWithKey + index + " CROSS JOIN event ON event.seq = delivery.event WHERE " + where + conditions +
		" AND delivery.id < ? ORDER BY delivery.id DESC LIMIT ?"
	list, err := r.deliveries(ctx, query, append(args, before, limit)...)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return list, nil
}

func (r *Reader) deliveryConditions(ctx context.Context, f DeliveryFilter) (string, []any, error) {
	var b strings.Builder
	var args []any
	add := func(condition string, arg any) {
		b.WriteString(" AND " + condition)
		args = append(args, arg)
	}
	if f.Event != nil {
		e, err := r.Find(ctx, *f.Event)
		if err != nil {
			return "", nil, err
		}
		add("delivery.event = ?", e.Seq)
	}
	if f.Source != "" {
		add("+event.source = ?", f.Source)
	}
	if f.Destination != "" {
		add("+delivery.destination = ?", f.Destination)
	}
	if f.Key != "" {
		forms, err := r.storedForms(ctx, f.Key)
		if err != nil {
			return "", nil, err
		}
		b.WriteString(" AND delivery.key IN (?" + strings.Repeat(",?", len(forms)-1) + ")")
		args = append(args, forms...)
	}
	if f.Error != "" {
		add("instr(delivery.error, ?) > 0", f.Error)
	}
	return b.String(), args, nil
}

func (r *Reader) deliveries(ctx context.Context, query string, args ...any) ([]event.Delivery, error) {
	var list []event.Delivery
	err := r.list(ctx, query, args, func(r row) error {
		list = append(list, keyedDelivery(r))
		return nil
	})
	return list, err
}

// keyedDelivery reads deliveryColumns and the key of the event after them.
func keyedDelivery(r row) event.Delivery {
	d := deliveryOf(r)
	d.Event = keyOf(r, 15)
	d.Key, d.LongKey = showKey(d.Key, d.LongKey, d.Event)
	return d
}

const sqlDeliveryOf = deliveryWithKey + `JOIN event ON event.seq = delivery.event
	WHERE delivery.key = ? AND delivery.destination = ?`

// DeliveryOf finds the delivery of a business key to a destination: whether an
// operation is applied, before anything is done.
func (r *Reader) DeliveryOf(ctx context.Context, key, destination string) (event.Delivery, bool, error) {
	forms, err := r.storedForms(ctx, key)
	if err != nil {
		return event.Delivery{}, false, fmt.Errorf("find delivery: %w", err)
	}
	for _, stored := range forms {
		list, err := r.deliveries(ctx, sqlDeliveryOf, stored, destination)
		if err != nil {
			return event.Delivery{}, false, fmt.Errorf("find delivery: %w", err)
		}
		if len(list) > 0 {
			return list[0], true, nil
		}
	}
	return event.Delivery{}, false, nil
}

const attemptColumns = `delivery, run, number, spent, start, duration, status, outcome, error, answer`

const sqlAttempts = `SELECT ` + attemptColumns + ` FROM attempt WHERE delivery = ? ORDER BY run, number LIMIT ?`

// Attempts lists the tries at a delivery in their order, at most 500.
func (r *Reader) Attempts(ctx context.Context, delivery int64) ([]event.Attempt, error) {
	var list []event.Attempt
	err := r.list(ctx, sqlAttempts, []any{delivery, maxPage}, func(r row) error {
		list = append(list, attemptOf(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list attempts of delivery %d: %w", delivery, err)
	}
	return list, nil
}
