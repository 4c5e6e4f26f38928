package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"creel/event"
)

const (
	// parcelBytes is how much of what requests carried shares one row. Rows of
	// a kilobyte or two leave up to half of their page empty; a parcel runs
	// over into pages of its own and fills them. Whoever reads one event reads
	// its parcel, so it is not larger.
	parcelBytes = 64 << 10
	// parcelsKept is how many of a transaction leave their memory to the next.
	parcelsKept = 4

	sqlNextPayload   = `SELECT ifnull(max(id), 0) + 1 FROM payload`
	sqlInsertPayload = `INSERT INTO payload (id, data) VALUES (?, ?)`
	sqlPayload       = `SELECT data FROM payload WHERE id = ?`
)

// parcels are what the requests of the open transaction carried, on their way
// into rows of their own. A unit learns the place of its bytes before it
// inserts, and puts them there once it knows that they are new. The rows are
// written once, before COMMIT. All of it belongs to the writer.
type parcels struct {
	next int64 // id of the next parcel; 0 before the first of a transaction
	list []parcel
}

type parcel struct {
	id    int64
	data  []byte
	alone bool // nobody else's bytes may join it
}

// parcelMark is a state that the parcels can go back to.
type parcelMark struct{ parcels, bytes int }

// reset forgets everything: a transaction begins. The memory is used again,
// unless it once held something large.
func (p *parcels) reset() {
	for i := range p.list {
		if i >= parcelsKept || cap(p.list[i].data) > 2*parcelBytes {
			p.list[i].data = nil
		}
	}
	p.list, p.next = p.list[:0], 0
}

func (p *parcels) mark() parcelMark {
	if len(p.list) == 0 {
		return parcelMark{}
	}
	return parcelMark{len(p.list), len(p.list[len(p.list)-1].data)}
}

// back takes out what came after the mark: the unit that put it there failed.
func (p *parcels) back(m parcelMark) {
	p.list = p.list[:m.parcels]
	if m.parcels > 0 {
		last := &p.list[m.parcels-1]
		last.data = last.data[:m.bytes]
	}
}

// place tells where the next size bytes will stand.
func (t *tx) place(size int) (payload int64, at int, err error) {
	p := &t.c.parcels
	if n := len(p.list); n > 0 && !p.list[n-1].alone && len(p.list[n-1].data)+size <= parcelBytes {
		return p.list[n-1].id, len(p.list[n-1].data), nil
	}
	if p.next == 0 {
		err := t.query(sqlNextPayload, nil, func(r row) error {
			p.next = r.int64(0)
			return nil
		})
		if err != nil {
			return 0, 0, fmt.Errorf("number a payload: %w", err)
		}
	}
	return p.next, 0, nil
}

// carry puts bytes in the place that place named for them.
func (t *tx) carry(payload int64, body []byte, header, query string) {
	p := &t.c.parcels
	if n := len(p.list); n == 0 || p.list[n-1].id != payload {
		p.next++
		if n < cap(p.list) {
			p.list = p.list[:n+1] // with the memory that it had
			p.list[n] = parcel{id: payload, data: p.list[n].data[:0]}
		} else {
			p.list = append(p.list, parcel{id: payload})
		}
	}
	last := &p.list[len(p.list)-1]
	last.data = slices.Grow(last.data, len(body)+len(header)+len(query))
	last.data = append(append(append(last.data, body...), header...), query...)
}

// carryAlone puts bytes into a row of their own.
func (t *tx) carryAlone(body []byte, header, query string) (payload int64, err error) {
	if payload, _, err = t.place(parcelBytes + 1); err != nil {
		return 0, err
	}
	t.carry(payload, body, header, query)
	t.c.parcels.list[len(t.c.parcels.list)-1].alone = true
	return payload, nil
}

// write inserts the parcels of the transaction.
func (p *parcels) write(t *tx) error {
	for i := range p.list {
		if len(p.list[i].data) == 0 {
			p.list[i].data = []byte{} // nil would be NULL
		}
		if _, err := t.exec(sqlInsertPayload, p.list[i].id, p.list[i].data); err != nil {
			return fmt.Errorf("insert payloads: %w", err)
		}
	}
	return nil
}

// errCut says that a payload ends before the bytes that an event names.
var errCut = errors.New("the stored payload is shorter than its event says")

// location is where the bytes of an event stand.
type location struct {
	part                    string
	payload                 int64 // 0 where nothing is kept
	at, body, header, query int64
}

// locationOf reads locationColumns.
func locationOf(r row, first int) location {
	return location{
		part: r.text(first), payload: r.int64(first + 1), at: r.int64(first + 2),
		body: r.int64(first + 3), header: r.int64(first + 4), query: r.int64(first + 5),
	}
}

// cut takes the bytes of an event out of its payload. A body that is a small
// part of it is copied, so that it does not keep the rest in memory.
func (l location) cut(data []byte) (event.Payload, error) {
	p := event.Payload{Part: l.part}
	if l.payload == 0 {
		return p, nil
	}
	header := l.at + l.body
	query := header + l.header
	end := query + l.query
	if end > int64(len(data)) {
		return p, fmt.Errorf("payload %d: %w", l.payload, errCut)
	}
	p.Body = data[l.at:header:header]
	if 2*len(p.Body) < len(data) {
		p.Body = bytes.Clone(p.Body)
	}
	p.Header, p.Query = string(data[header:query]), string(data[query:end])
	return p, nil
}

// payloadCache reads payloads inside the writer, each once for neighbours. The
// events of one request share their body in memory too.
type payloadCache struct {
	t    *tx
	id   int64
	data []byte
	last location
	have event.Payload
}

func (c *payloadCache) load(l location) (event.Payload, error) {
	whole := l
	whole.part = ""
	if l.payload != 0 && whole == c.last {
		same := c.have
		same.Part = l.part
		return same, nil
	}
	if l.payload != 0 && l.payload != c.id {
		err := c.t.query(sqlPayload, []any{l.payload}, func(r row) error {
			c.id, c.data = l.payload, r.blob(0)
			return nil
		})
		if err != nil {
			return event.Payload{}, fmt.Errorf("read payload: %w", err)
		}
		if c.id != l.payload {
			c.id, c.data = l.payload, nil
		}
	}
	var err error
	c.last = whole
	c.have, err = l.cut(c.data)
	return c.have, err
}
