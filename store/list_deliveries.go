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

// Deliveries lists deliveries, newest first. Page.Before is a delivery's id. It
// searches to the end: where few of many are meant, DeliveryPage answers sooner.
func (r *Reader) Deliveries(ctx context.Context, f DeliveryFilter, page event.Page) ([]event.Delivery, error) {
	before, limit := bounds(page)
	var list []event.Delivery
	for {
		found, err := r.DeliveryPage(ctx, f, event.Page{Before: before, Limit: limit - len(list)})
		if err != nil {
			return nil, err
		}
		list = append(list, found.Deliveries...)
		if before = found.Next; before == 0 || len(list) == limit {
			return list, nil
		}
	}
}

// DeliveryPage is one page of a search.
type DeliveryPage struct {
	Deliveries []event.Delivery
	Next       int64 // where the next page begins; 0 where nothing is left
	// Partial says that the page has fewer deliveries than asked for because a
	// page looks at no more than some thousands: the search goes on at Next.
	Partial bool
}

// DeliveryPage lists deliveries as Deliveries does, and stops where a search
// becomes long.
func (r *Reader) DeliveryPage(ctx context.Context, f DeliveryFilter, page event.Page) (DeliveryPage, error) {
	before, limit := bounds(page)
	found, err := r.deliveryPage(ctx, f, before, limit)
	if err != nil {
		return DeliveryPage{}, fmt.Errorf("list deliveries: %w", err)
	}
	return found, nil
}

func (r *Reader) deliveryPage(ctx context.Context, f DeliveryFilter, before int64, limit int) (page DeliveryPage, err error) {
	index, where := "", "1"
	if f.State != "" && f.State != event.DeliverySent {
		index = "INDEXED BY delivery_open"
		where = "delivery.state <> 'sent' AND delivery.state = " + literal(string(f.State))
	} else if f.State != "" {
		where = "delivery.state = 'sent'"
	}
	conditions, args, err := r.deliveryConditions(ctx, f)
	if err != nil {
		return page, err
	}
	var floor int64
	if f.passesOver() {
		base := "1"
		if index != "" {
			base = where
		}
		_, err := none(r.row(ctx, "SELECT delivery.id FROM delivery "+index+" WHERE "+base+" AND delivery.id < ? ORDER BY delivery.id DESC LIMIT 1 OFFSET ?",
			[]any{before, r.search.deliveries}, &floor))
		if err != nil {
			return page, err
		}
	}
	query := deliveryWithKey + index + " LEFT JOIN event ON event.seq = delivery.event WHERE " + where + conditions +
		" AND delivery.id < ? AND delivery.id >= ? ORDER BY delivery.id DESC LIMIT ?"
	page.Deliveries, err = r.deliveries(ctx, query, append(args, before, floor, limit)...)
	switch n := len(page.Deliveries); {
	case n == limit:
		page.Next = page.Deliveries[n-1].ID
	case floor > 0:
		page.Next, page.Partial = floor, true
	}
	return page, err
}

// passesOver tells whether a list may have to look at many that it does not
// take.
func (f *DeliveryFilter) passesOver() bool {
	return f.Event == nil && f.Key == "" && (f.Source != "" || f.Destination != "" || f.Error != "" || f.State == event.DeliverySent)
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
	d.Event = keyOf(r, 16)
	d.Key, d.LongKey = showKey(d.Key, d.LongKey, d.Event)
	return d
}

const sqlDeliveryByID = deliveryWithKey + `LEFT JOIN event ON event.seq = delivery.event WHERE delivery.id = ?`

// Delivery reads one delivery by its number, of an alert too; event.ErrNotFound.
func (r *Reader) Delivery(ctx context.Context, id int64) (event.Delivery, error) {
	list, err := r.deliveries(ctx, sqlDeliveryByID, id)
	if err == nil && len(list) == 0 {
		err = event.ErrNotFound
	}
	if err != nil {
		return event.Delivery{}, fmt.Errorf("read delivery %d: %w", id, err)
	}
	return list[0], nil
}

const sqlDeliveryOf = deliveryWithKey + `LEFT JOIN event ON event.seq = delivery.event
	WHERE delivery.key = ? AND delivery.destination = ? AND delivery.target = ?`

// DeliveryOf finds the delivery of a business key to a destination: whether an
// operation is applied, before anything is done.
func (r *Reader) DeliveryOf(ctx context.Context, key, destination string) (event.Delivery, bool, error) {
	return r.DeliveryTo(ctx, key, destination, "")
}

// DeliveryTo is DeliveryOf for one target at the destination: a mail's
// recipient.
func (r *Reader) DeliveryTo(ctx context.Context, key, destination, target string) (event.Delivery, bool, error) {
	forms, err := r.storedForms(ctx, key)
	if err != nil {
		return event.Delivery{}, false, fmt.Errorf("find delivery: %w", err)
	}
	for _, stored := range forms {
		list, err := r.deliveries(ctx, sqlDeliveryOf, stored, destination, target)
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
