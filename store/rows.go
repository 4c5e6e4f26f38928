package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"time"

	"creel/event"
)

// eventColumns are read by eventOf, in this order.
const eventColumns = `event.seq, event.source, event.account, event.id, event.long_id,
	event.type, event.object, event.version, event.state, event.error, event.run, event.attempts,
	event.duplicates, event.origin, event.received_at, event.duplicate_at, event.next_at, event.finished_at,
	event.lane, event.lane_skip, event.waits, event.passes`

// workColumns are eventColumns and what a claimed event carries besides, read
// by workOf.
const workColumns = eventColumns + `, event.claim, ` + locationColumns

// locationColumns say where the bytes of an event stand, read by locationOf.
const locationColumns = `event.part, event.payload, event.body_at, event.body_size, event.header_size, event.query_size`

// deliveryColumns are read by deliveryOf, in this order.
const deliveryColumns = `delivery.id, delivery.event, delivery.rule, delivery.key, delivery.long_key,
	delivery.destination, delivery.state, delivery.run, delivery.attempts, delivery.tries,
	delivery.status, delivery.error, delivery.created_at, delivery.next_at, delivery.finished_at, delivery.target`

func eventOf(r row) event.Event {
	return event.Event{
		Seq:         r.int64(0),
		Key:         event.Key{Source: r.text(1), Account: r.text(2), ID: r.text(3)},
		LongID:      r.text(4),
		Type:        r.text(5),
		Object:      r.text(6),
		Version:     r.text(7),
		State:       event.State(r.text(8)),
		Error:       r.text(9),
		Run:         r.int(10),
		Attempts:    r.int(11),
		Duplicates:  r.int(12),
		Origin:      originOf(r, 13),
		ReceivedAt:  timeOf(r, 14),
		DuplicateAt: timeOf(r, 15),
		NextAt:      timeOf(r, 16),
		FinishedAt:  timeOf(r, 17),
		Lane:        r.text(18),
		LaneSkip:    r.bool(19),
		Waits:       r.bool(20),
		Passes:      r.bool(21),
	}
}

// workOf reads workColumns; the payload itself is still to be read.
func workOf(r row) (event.Work, location) {
	work := event.Work{Event: eventOf(r), Claim: event.Claim(r.text(22))}
	l := locationOf(r, 23)
	work.Part = l.part
	return work, l
}

// deliveryOf reads deliveryColumns; the event's key is not among them.
func deliveryOf(r row) event.Delivery {
	d := event.Delivery{
		ID:          r.int64(0),
		EventSeq:    r.int64(1),
		Rule:        r.text(2),
		Key:         r.text(3),
		LongKey:     r.text(4),
		Destination: r.text(5),
		State:       event.DeliveryState(r.text(6)),
		Run:         r.int(7),
		Attempts:    r.int(8),
		Tries:       r.int(9),
		Status:      r.int(10),
		Error:       r.text(11),
		CreatedAt:   timeOf(r, 12),
		FinishedAt:  timeOf(r, 14),
		Target:      r.text(15),
	}
	if d.EventSeq == 0 {
		d.Alert, _ = alertOf(d.Key)
	}
	if d.State == event.DeliveryReady {
		d.NextAt = timeOf(r, 13)
	}
	return d
}

func originOf(r row, i int) event.Origin {
	if origin := r.text(i); origin != "" {
		return event.Origin(origin)
	}
	return event.FromWebhook
}

// keyOf reads an event key from three columns.
func keyOf(r row, first int) event.Key {
	return event.Key{Source: r.text(first), Account: r.text(first + 1), ID: r.text(first + 2)}
}

// timeOf reads a time; NULL is the zero time.
func timeOf(r row, i int) time.Time {
	if r.null(i) {
		return time.Time{}
	}
	return time.UnixMilli(r.int64(i)).UTC()
}

// ms is a time as it is stored; the zero time is NULL.
func ms(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// list is Reader.rows with the rows as the writer sees them, so that one
// function reads a table wherever its rows come from.
func (r *Reader) list(ctx context.Context, query string, args []any, scan func(row) error) error {
	return r.rows(ctx, query, args, scanner(scan))
}

// list is Reader.list on the snapshot.
func (s snapshot) list(query string, args []any, scan func(row) error) error {
	return s.rows(query, args, scanner(scan))
}

func scanner(scan func(row) error) func(*sql.Rows) error {
	var cells, places []any
	return func(rows *sql.Rows) error {
		if cells == nil {
			names, err := rows.Columns()
			if err != nil {
				return err
			}
			cells, places = make([]any, len(names)), make([]any, len(names))
			for i := range cells {
				places[i] = &cells[i]
			}
		}
		if err := rows.Scan(places...); err != nil {
			return err
		}
		values := make([]driver.Value, len(cells))
		for i, c := range cells {
			values[i] = c
		}
		return scan(row{values})
	}
}

// literal writes a state into the text of a query: a partial index is used
// only where its own words stand in the query.
func literal(state string) string {
	return "'" + strings.ReplaceAll(state, "'", "''") + "'"
}
