package store

import (
	"database/sql/driver"
	"fmt"
	"strings"
)

// mostImagined bounds what a plan remembers of what its events would store, in
// rows. A longer one forgets its beginning.
const mostImagined = 200_000

// imagination is a snapshot with rows that would be there if the events of a
// plan had run: what a look-up by a key would find.
type imagination struct {
	snapshot
	rows    map[string][]driver.Value // by the look-up that finds them
	changes []imagined                // of the event that is looked at
	ids     int64
	known   spoken
}

// imagined is a row that came into the imagination, with what was in its place.
type imagined struct {
	place  string
	before []driver.Value // nil where there was none
}

// begin goes on with the next event, in a snapshot of its own.
func (m *imagination) begin(s snapshot) {
	m.snapshot, m.changes = s, nil
	if len(m.rows) > mostImagined {
		clear(m.rows)
	}
}

// query is a look-up: in the imagination first.
func (m *imagination) query(sql string, args []any, scan func(row) error) error {
	if values, is := m.rows[lookUp(sql, args)]; is {
		return scan(row{values})
	}
	return m.snapshot.query(sql, args, scan)
}

// row imagines what a look-up finds.
func (m *imagination) row(sql string, args []any, values ...driver.Value) {
	place := lookUp(sql, args)
	m.changes = append(m.changes, imagined{place, m.rows[place]})
	m.rows[place] = values
}

// next is the number of a row that would be inserted: beyond all that there are.
func (m *imagination) next() int64 {
	m.ids++
	return 1<<62 + m.ids
}

// undo takes back what came into the imagination after a moment.
func (m *imagination) undo(to int) {
	for len(m.changes) > to {
		last := m.changes[len(m.changes)-1]
		if m.changes = m.changes[:len(m.changes)-1]; last.before == nil {
			delete(m.rows, last.place)
		} else {
			m.rows[last.place] = last.before
		}
	}
}

// lookUp names a statement with its arguments.
func lookUp(sql string, args []any) string {
	var b strings.Builder
	b.WriteString(sql)
	for _, arg := range args {
		fmt.Fprintf(&b, "\x00%T %d %v", arg, len(fmt.Sprint(arg)), arg)
	}
	return b.String()
}
