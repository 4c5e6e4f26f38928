package model

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver, to read the file without the product's own code
	"pgregory.net/rapid"

	"creel/event"
)

// eye looks at the file beside the store.
type eye struct{ db *sql.DB }

func open(t *rapid.T, path string) *eye {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return &eye{db}
}

func (e *eye) close(t *rapid.T) {
	if err := e.db.Close(); err != nil {
		t.Fatal(err)
	}
}

// lines are the rows of a query as texts.
func (e *eye) lines(m *model, query string, args ...any) (lines []string) {
	rows, err := e.db.Query(query, args...)
	if err != nil {
		m.problem("%s: %v", query, err)
		return nil
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			m.problem("%s: %v", query, err)
		}
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = v.String
		}
		lines = append(lines, strings.Join(texts, "|"))
	}
	if err := rows.Err(); err != nil {
		m.problem("%s: %v", query, err)
	}
	return lines
}

func (e *eye) nothingDue(w *world, table, where string) {
	for _, line := range e.lines(w.m, "SELECT * FROM "+table+" WHERE "+where, w.clock.Now().UnixMilli()) {
		w.m.problem("at rest, this is due: %s", line)
	}
}

// same holds what is stored against what the model says.
func (m *model) same(what string, got, want []string) {
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			m.problem("%s:\n  stored %s\n  model  %s", what, g, w)
			return
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compare looks at everything that is stored.
func (w *world) compare() {
	m, e := w.m, w.eye
	m.same("event", e.lines(m, `SELECT seq, source, id, state, run, attempts, duplicates, conflicts, alone, revivable, waits, passes, claim, lane, rank FROM event ORDER BY seq`), m.eventLines())
	m.same("delivery", e.lines(m, `SELECT d.id, d.event, v.key, d.destination, d.target, d.state, d.run, d.attempts, d.tries, d.probe, d.passes, d.claim, d.lane,
		(SELECT count(*) FROM attempt WHERE delivery = d.id) FROM delivery AS d JOIN v_delivery AS v ON v.id = d.id ORDER BY d.id`), m.parcelLines())
	m.compareFacts(e)
	m.same("destination", e.lines(m, `SELECT name, state FROM destination ORDER BY name`), lined(m.places, func(name string, s event.DestinationState) string {
		return fmt.Sprintf("%s|%s", name, s)
	}))
	m.compareIncidents(e)
	w.punctual()
}

func (m *model) eventLines() (lines []string) {
	for _, e := range m.events {
		lines = append(lines, fmt.Sprintf("%d|%s|%s|%s|%d|%d|%d|%d|%d|%d|%d|%d|%s|%s|%s", e.seq, e.key.Source, e.key.ID, e.state, e.run, e.attempts,
			e.duplicates, e.conflicts, bit(e.alone), bit(e.revivable), bit(e.waits), bit(e.passes), e.claim, e.lane, e.rank))
	}
	return lines
}

func (m *model) parcelLines() (lines []string) {
	for _, p := range m.parcels {
		lines = append(lines, fmt.Sprintf("%d|%d|%s|%s|%s|%s|%d|%d|%d|%d|%d|%s|%s|%d", p.id, p.of.seq, p.key, p.to, p.target, p.state, p.run, p.attempts,
			p.tries, bit(p.probe), bit(p.passes), p.claim, p.lane, p.rows))
	}
	return lines
}

// lined writes a map in the order of its lines.
func lined[K comparable, V any](facts map[K]V, line func(K, V) string) []string {
	lines := []string{}
	for key, value := range facts {
		lines = append(lines, line(key, value))
	}
	slices.Sort(lines)
	return lines
}

// unfold writes JSON fields as text does. It is the last column.
func unfold(lines []string) []string {
	for i, line := range lines {
		at := strings.Index(line, "{")
		var fields map[string]string
		if at < 0 || json.Unmarshal([]byte(line[at:]), &fields) != nil {
			continue
		}
		var list []event.Field
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			list = append(list, event.Field{Name: name, Value: fields[name]})
		}
		lines[i] = line[:at] + text(list)
	}
	slices.Sort(lines)
	return lines
}

func (m *model) compareFacts(e *eye) {
	sorted := func(query string) []string { return unfold(e.lines(m, query)) }
	m.same("record", sorted(`SELECT key, kind, fields FROM v_record`), lined(m.records, func(id [2]string, fields string) string {
		return id[0] + "|" + id[1] + "|" + fields
	}))
	m.same("ledger", sorted(`SELECT v.key, v.holder, v.unit, v.amount, o.key FROM v_ledger AS v LEFT JOIN v_ledger AS o ON o.id = v.reverses`),
		lined(m.ledger, func(key string, n entry) string {
			return fmt.Sprintf("%s|%s|%s|%d|%s", key, n.holder, n.unit, n.amount, n.reverses)
		}))
	balances := lined(m.balance, func(of [2]string, amount int64) string { return fmt.Sprintf("%s|%s|%d", of[0], of[1], amount) })
	m.same("balance", sorted(`SELECT holder, unit, amount FROM v_balance`), balances)
	m.same("sum of the ledger", sorted(`SELECT holder, unit, sum(amount) FROM ledger GROUP BY holder, unit`), balances)
	m.same("state", sorted(`SELECT state.object, state.rank, state.tie, state.event, (SELECT count(*) FROM transition WHERE object = state.object), state.state, state.fields FROM state`),
		lined(m.objects, func(name string, o object) string {
			return fmt.Sprintf("%s|%s|%s|%d|%d|%s|%s", name, o.rank, o.tie, o.event.seq, m.history[name], o.state, o.fields)
		}))
}

// compareIncidents demands one open incident for one cause and subject, which
// counts what is dead or parked and nothing else.
func (m *model) compareIncidents(e *eye) {
	none := func(what, query string) {
		for _, line := range e.lines(m, query) {
			m.problem("%s: %s", what, line)
		}
	}
	none("two incidents are open", `SELECT cause, subject, count(*) FROM incident WHERE resolved_at IS NULL GROUP BY cause, subject HAVING count(*) > 1`)
	// The dead letters of an outage that is over count on its heir.
	const counted = `((SELECT count(*) FROM event WHERE incident = i.id AND state = 'dead') + (SELECT count(*) FROM delivery AS d WHERE state = 'dead'
		AND ifnull((SELECT h.id FROM incident AS o JOIN incident AS h ON h.id = o.heir WHERE o.id = d.incident AND h.dead > 0), d.incident) = i.id))`
	none("an incident counts other deaths", `SELECT id, cause, subject, dead, `+counted+` FROM incident AS i WHERE cause <> 'lane_parked' AND dead <> `+counted)
	none("an incident of deaths is over", `SELECT id, cause, subject FROM incident AS i WHERE cause LIKE 'dead_%' AND (resolved_at IS NULL) <> (`+counted+` > 0)`)
	none("a death without an incident", `SELECT seq FROM event WHERE state = 'dead' AND incident IS NULL AND error <> '`+unreadable+`'`)
	const parked = `((SELECT count(*) FROM event WHERE parks AND source = i.subject) + (SELECT count(*) FROM delivery WHERE parks AND destination = i.subject))`
	none("an incident counts other lanes", `SELECT id, subject, dead, `+parked+` FROM incident AS i WHERE cause = 'lane_parked' AND resolved_at IS NULL AND dead <> `+parked)
	none("a parked lane without an incident", `SELECT source FROM event WHERE parks AND source NOT IN (SELECT subject FROM incident WHERE cause = 'lane_parked' AND resolved_at IS NULL)
		UNION SELECT destination FROM delivery WHERE parks AND destination NOT IN (SELECT subject FROM incident WHERE cause = 'lane_parked' AND resolved_at IS NULL)`)
	none("nobody was told that a lane is parked", `SELECT seq FROM event AS h WHERE state = 'dead' AND lane <> '' AND NOT passes AND NOT parks
		AND NOT EXISTS (SELECT 1 FROM event WHERE lane = h.lane AND (state = 'claimed' OR (state = 'pending' AND NOT waits)))
		AND EXISTS (SELECT 1 FROM event WHERE lane = h.lane AND state = 'pending')
		AND NOT EXISTS (SELECT 1 FROM event WHERE lane = h.lane AND state = 'dead' AND NOT passes AND (rank, seq) < (h.rank, h.seq))`)
}

// punctual demands that nothing is due later than its policy can have asked
// for. The clock that was set back is noticed by the next step of the
// dispatcher.
func (w *world) punctual() {
	if w.back {
		return
	}
	latest := func(d time.Duration) int64 { return w.clock.Now().Add(d).UnixMilli() }
	for _, line := range w.eye.lines(w.m, `SELECT seq, next_at FROM event WHERE state = 'pending' AND waits = 0 AND next_at > ?1`, latest(eventPolicy().Longest(0))) {
		w.m.problem("an event is due too late: %s", line)
	}
	for _, r := range w.sky.routes() {
		for _, line := range w.eye.lines(w.m, `SELECT id, destination, next_at FROM delivery WHERE state = 'ready' AND destination = ?2 AND next_at > ?1`, latest(r.Longest), r.Name) {
			w.m.problem("a delivery is due too late: %s", line)
		}
	}
}
