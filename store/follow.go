package store

import (
	"context"
	"fmt"
	"strings"

	"creel/event"
)

// EventsBySeq reads events by their place in the inbox, without what they
// carried, in no order: at most 500, and those that there are.
func (r *Reader) EventsBySeq(ctx context.Context, seqs []int64) ([]event.Event, error) {
	var list []event.Event
	err := r.byNumber(ctx, `SELECT `+eventColumns+` FROM event WHERE seq IN (`, seqs, func(r row) error {
		list = append(list, eventOf(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return list, nil
}

// TypedDelivery is a delivery and the type of its event.
type TypedDelivery struct {
	event.Delivery
	Type string
}

// DeliveriesByID reads deliveries by their number as EventsBySeq does events.
func (r *Reader) DeliveriesByID(ctx context.Context, ids []int64) ([]TypedDelivery, error) {
	var list []TypedDelivery
	query := strings.Replace(deliveryWithKey, " FROM delivery", ", event.type FROM delivery", 1) +
		`JOIN event ON event.seq = delivery.event WHERE delivery.id IN (`
	err := r.byNumber(ctx, query, ids, func(r row) error {
		list = append(list, TypedDelivery{keyedDelivery(r), r.text(len(r.values) - 1)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	return list, nil
}

// byNumber runs a query that ends in "IN (" for at most 500 numbers, in
// lookups of a fixed size: few texts, each compiled once.
func (r *Reader) byNumber(ctx context.Context, query string, numbers []int64, scan func(row) error) error {
	const lookup = 25
	query += strings.TrimSuffix(strings.Repeat("?,", lookup), ",") + ")"
	for numbers = numbers[:min(len(numbers), maxPage)]; len(numbers) > 0; {
		args := make([]any, lookup)
		n := copy64(args, numbers)
		numbers = numbers[n:]
		if err := r.list(ctx, query, args, scan); err != nil {
			return err
		}
	}
	return nil
}

// copy64 fills the arguments with numbers, and what is left with one that no
// row has.
func copy64(args []any, numbers []int64) int {
	n := min(len(args), len(numbers))
	for i := range args {
		args[i] = int64(-1)
		if i < n {
			args[i] = numbers[i]
		}
	}
	return n
}
