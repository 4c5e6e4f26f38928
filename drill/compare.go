package drill

import (
	"fmt"
	"slices"
	"strings"

	"creel/event"
	"creel/store"
)

// difference is one thing that two outcomes do not share.
type difference struct {
	table string
	rules []string // that left it, or may have
	name  string
	event string // whose it is; "" where nobody can tell
	have  string // in the first; "" where it is not there
	other string // in the second
	path  bool
}

// String says both values.
func (d *difference) String() string {
	what := d.table + " " + d.name
	switch {
	case d.have == "" && d.other == "":
		return what + " is there in one of them alone"
	case d.have == "":
		return what + ": not there, and " + short(d.other)
	case d.other == "":
		return what + ": " + short(d.have) + ", and not there"
	}
	return what + ": " + short(d.have) + ", and " + short(d.other)
}

// second says what there is besides the first, or instead of it.
func (d *difference) second() string {
	if d.have == "" {
		return "another " + d.table + " " + d.name + ": " + short(d.other)
	}
	return d.String()
}

// maxShown bounds a value in a reason, in bytes.
const maxShown = 200

func short(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// present is a value that is never empty, so that absence shows.
func present(value string) string {
	if value == "" {
		return "there"
	}
	return value
}

// compare lists what differs between two outcomes, the most telling first.
func (d *drill) compare(base, other outcome) []difference {
	all := compareTraces(base.traces, other.traces)
	for i := range base.own {
		for _, diff := range d.compareTable(&base.own[i], &other.own[i]) {
			diff.rules = d.writersOf(base.own[i].Name)
			all = append(all, diff)
		}
	}
	slices.SortStableFunc(all, func(a, b difference) int { return a.weight() - b.weight() })
	return all
}

// weight orders differences by how much they say: a dead event more than those
// that wait behind it.
func (d *difference) weight() int {
	order := []string{"event", "", "state", "ledger", "record", "transition"}
	i := slices.Index(order, d.table)
	switch {
	case d.table == "event" && d.other == string(event.Pending):
		return 1
	case i >= 0:
		return i
	case d.table == "delivery" || d.table == "operation":
		return len(order)
	}
	return 2 // the owner's
}

func (d *drill) writersOf(table string) []string {
	var rules []string
	for rule, tables := range d.writes {
		if slices.Contains(tables, table) {
			rules = append(rules, rule)
		}
	}
	slices.Sort(rules)
	return rules
}

// compareTraces pairs what has one table and name. Balances are left out: they
// are the sum of the ledger.
func compareTraces(base, other []store.Trace) []difference {
	type id struct{ table, name string }
	group := func(traces []store.Trace) (map[id][]store.Trace, []id) {
		by := map[id][]store.Trace{}
		var order []id
		for _, t := range traces {
			if t.Table == "balance" {
				continue
			}
			key := id{t.Table, t.Name}
			if by[key] == nil {
				order = append(order, key)
			}
			by[key] = append(by[key], t)
		}
		return by, order
	}
	have, order := group(base)
	got, more := group(other)
	var all []difference
	for _, key := range slices.Concat(order, more) {
		a, b := have[key], got[key]
		delete(have, key)
		delete(got, key)
		for i := range max(len(a), len(b)) {
			diff := difference{table: key.table, name: key.name}
			if i < len(b) {
				diff.take(&b[i])
				diff.other = present(b[i].Value)
			}
			if i < len(a) {
				diff.take(&a[i])
				diff.have = present(a[i].Value)
			}
			if diff.have != diff.other {
				all = append(all, diff)
			}
		}
	}
	return all
}

func (d *difference) take(t *store.Trace) {
	if t.Rule != "" && !slices.Contains(d.rules, t.Rule) {
		d.rules = append(d.rules, t.Rule)
	}
	d.event, d.path = t.Event.String(), t.Path
}

// compareTable compares a table of the owner's by what its rows say: what
// SQLite counts up, and what differs between two runs of the same (a time), is
// left out.
func (d *drill) compareTable(base, other *store.OwnTable) []difference {
	counts := func(t *store.OwnTable) (map[string]int, map[string]string) {
		rows, shown := map[string]int{}, map[string]string{}
		for _, row := range t.Rows {
			text := d.said(base, row)
			rows[text]++
			shown[text] = strings.Join(row, ", ")
		}
		return rows, shown
	}
	have, shownHave := counts(base)
	got, shownGot := counts(other)
	missing, extra := surplus(have, got), surplus(got, have)
	var all []difference
	for i := range max(len(missing), len(extra)) {
		diff := difference{table: base.Name}
		if i < len(missing) {
			diff.have = "(" + shownHave[missing[i]] + ")"
		}
		if i < len(extra) {
			diff.other = "(" + shownGot[extra[i]] + ")"
		}
		diff.name = "(" + strings.Join(d.columns(base), ", ") + ")"
		all = append(all, diff)
	}
	return all
}

// said is what a row says.
func (d *drill) said(t *store.OwnTable, row []string) string {
	var b strings.Builder
	for i, cell := range row {
		if !d.ignored(t, i) {
			fmt.Fprintf(&b, "%d:%s,", len(cell), cell)
		}
	}
	return b.String()
}

func (d *drill) columns(t *store.OwnTable) []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// surplus lists the texts that the first has more often than the second.
func surplus(a, b map[string]int) []string {
	var all []string
	for text, n := range a {
		for range n - b[text] {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// ignored tells whether a column differs from run to run.
func (d *drill) ignored(t *store.OwnTable, column int) bool {
	return t.Columns[column].Counted && countedUp(t, column) || slices.Contains(d.moving[t.Name], t.Columns[column].Name)
}

// countedUp tells whether the values of a column are those that SQLite gives by
// itself, one after another.
func countedUp(t *store.OwnTable, column int) bool {
	seen := map[string]bool{}
	for _, row := range t.Rows {
		seen[row[column]] = true
	}
	if !t.Columns[column].Key {
		return true // a reference to such a column
	}
	for i := range t.Rows {
		if !seen[fmt.Sprint(i+1)] {
			return false
		}
	}
	return true
}

// movingColumns are the columns whose values differ between two runs of the
// same events: times and random numbers.
func movingColumns(first, second []store.OwnTable) map[string][]string {
	moving := map[string][]string{}
	values := func(t *store.OwnTable, column int) []string {
		var all []string
		for _, row := range t.Rows {
			all = append(all, row[column])
		}
		slices.Sort(all)
		return all
	}
	for i := range first {
		for column, c := range first[i].Columns {
			if !slices.Equal(values(&first[i], column), values(&second[i], column)) {
				moving[first[i].Name] = append(moving[first[i].Name], c.Name)
			}
		}
	}
	return moving
}
