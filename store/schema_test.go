package store

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"creel/event"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The schema is what the golden file says: a change of it is a new migration,
// and a new golden file in the same commit.
func TestGoldenSchema(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	var b strings.Builder
	err := sc.list(context.Background(), `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name`, nil, func(r row) error {
		b.WriteString(r.text(0) + ";\n\n")
		return nil
	})
	must(t, err)
	const golden = "testdata/schema.golden"
	if *update {
		must(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	wanted, err := os.ReadFile(golden)
	must(t, err)
	if b.String() != string(wanted) {
		t.Errorf("the schema is not that of %s (run with -update after adding a migration):\n%s", golden, b.String())
	}
}

// Every hot query runs over the index that was made for it, and none scans.
func TestQueryPlans(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	page := " ORDER BY event.seq DESC LIMIT 50"
	list := func(s event.Selector) string {
		b := branches(s)[0]
		return "SELECT " + eventColumns + " FROM " + b.from + " WHERE " + b.where + page
	}
	second := branches(event.Selector{State: event.Dead})[1]
	died := func(kind deadKind, group int64) string {
		over, base, _ := kind.all(group)
		return kind.columns() + " FROM " + over + strings.Repeat(ofItsEvent, 1-int(kind)) + " WHERE " + base +
			fmt.Sprintf(" AND (%[1]s.finished_at, %[2]s) < (?, ?) ORDER BY %[1]s.finished_at DESC, %[2]s DESC LIMIT 9", kind.table(), kind.id())
	}
	lone := func(kind deadKind) string {
		query, _ := kind.lone(1)
		return query
	}
	groups := func(order FailureOrder) string {
		query, _ := failureQuery(FailureFilter{Source: "gen"}, order, FailureCursor{Rank: 1, ID: 1})
		return query
	}
	sieve := sifterOf(event.Selector{Source: "gen", Type: "a.*", Object: "o", Since: start})
	zones, _ := sieve.query()
	records := func(f RecordFilter) string {
		query, _, err := sc.recordQuery(t.Context(), f)
		must(t, err)
		return query
	}
	tests := map[string]struct{ query, index string }{
		"claim events":         {sqlClaimEvents, "event_due"},
		"look for events":      {sqlDueEvents, "event_due"},
		"next event":           {sqlNextEvent, "event_due"},
		"lane":                 {sqlLaneMembers, "event_lane (state=? AND lane=? AND waits=?)"},
		"claimed of a lane":    {sqlLaneMembers, "event_lane (state=? AND lane=?)"},
		"deliveries of a lane": {sqlDeliveryMembers, "delivery_lane (state=? AND lane=? AND destination=? AND target=?)"},
		"next parked lane":     {sqlNextLane, "event_lane (state=? AND lane>?)"},
		"behind in a lane":     {sqlEventsBehind, "event_lane (state=? AND lane=?)"},
		"behind at a target":   {sqlDeliveriesBehind, "delivery_lane (state=? AND lane=? AND destination=? AND target=?)"},
		"stuck targets":        {sqlStuckTargets, "delivery_lane (state=? AND lane=?)"},
		"any lane":             {sqlAnyLane, "event_lane"},
		"any delivery lane":    {sqlAnyDeliveryLane, "delivery_lane"},
		"count of claims":      {sqlCountClaims, "event_open (state=?)"},
		"take back events":     {sqlTakeBackEvents, "event_open (state=?)"},
		"clamp events":         {sqlClampEvents, "event_due (next_at>?)"},
		"finish event":         {sqlEventOver, "INTEGER PRIMARY KEY (rowid=?)"},
		"known key":            {sqlKnownKey, "sqlite_autoindex_event_1 (source=? AND account=? AND id=?)"},
		"body key":             {sqlBodyEvent, "PRIMARY KEY (source=? AND sum=?)"},
		"claim deliveries":     {sqlClaimDue, "delivery_due (destination=? AND next_at<?)"},
		"claim a probe":        {sqlClaimProbe, "delivery_due (destination=?)"},
		"weigh deliveries":     {sqlDueWeight, "delivery_due (destination=? AND next_at<?)"},
		"next delivery":        {sqlNextDelivery, "delivery_due (destination=?)"},
		"lost deliveries":      {sqlLostDeliveries, "delivery_open (state=?)"},
		"clamp deliveries":     {sqlClampDeliveries, "delivery_due (destination=? AND next_at>?)"},
		"existing delivery":    {sqlExisting, "(key=? AND destination=? AND target=?)"},
		"outgoing by key":      {sqlNamedDelivery, "(key=? AND destination=? AND target=?)"},
		"spoken deliveries":    {sqlSpokenDelivery, "(key>? AND key<?)"},
		"spoken records":       {sqlSpokenRecord, "(key>? AND key<?)"},
		"spoken entries":       {sqlSpokenEntry, "(key>? AND key<?)"},
		"spoken states":        {sqlSpokenTransition, "transition_key (key>? AND key<?)"},
		"existing record":      {sqlExistingRecord, "(key=? AND kind=?)"},
		"existing entry":       {sqlExistingEntry, "sqlite_autoindex_ledger_1 (key=?)"},
		"reversal":             {sqlReversalOf, "ledger_reverses (reverses=?)"},
		"records by kind":      {records(RecordFilter{Kind: "order"}), "record_kind (kind=? AND rowid<?)"},
		"records by key":       {records(RecordFilter{Key: "k"}), "sqlite_autoindex_record_1 (key=?)"},
		"records":              {records(RecordFilter{}), "INTEGER PRIMARY KEY (rowid<?)"},
		"alerts of incident":   {sqlAlertsOf, "sqlite_autoindex_delivery_1 (key=?)"},
		"dead alerts":          {sqlDeadAlerts, "delivery_dead (event=?)"},
		"returning incident":   {sqlReturns, "incident_over (family=? AND subject=? AND resolved_at>?)"},
		"what waits for one":   {sqlWaitingFor, "delivery_due (destination=?)"},
		"records of event":     {sqlRecordsOf, "record_event (event=?)"},
		"entries":              {sqlEntries, "INTEGER PRIMARY KEY (rowid<?)"},
		"entries of holder":    {sqlLedgerOf, "ledger USING INTEGER PRIMARY KEY (rowid=?)"},
		"entries of event":     {sqlEntriesOf, "ledger_event (event=?)"},
		"balances":             {sqlBalances, "PRIMARY KEY ((holder,unit)>(?,?))"},
		"holdings":             {sqlHoldings, "PRIMARY KEY (holder=? AND unit>?)"},
		"object":               {sqlObjectState, "PRIMARY KEY (object=?)"},
		"history of object":    {sqlHistoryOf, "transition USING INTEGER PRIMARY KEY (rowid=?)"},
		"changes of event":     {sqlTransitionsOf, "transition_event (event=?)"},
		"balance":              {sqlBalance, "PRIMARY KEY (holder=? AND unit=?)"},
		"current state":        {sqlCurrentState, "PRIMARY KEY (object=?)"},
		"existing change":      {sqlExistingTransition, "transition_key (key=?)"},
		"revive deliveries":    {sqlReadyAgain, "delivery_dead (event=?)"},
		"running actions":      {sqlRunning, "action_running"},
		"actions of event":     {sqlActionsOf, "action_item_event (event=?)"},
		"open incidents":       {sqlOpen, "incident_open"},
		"a request again":      {sqlAsked, "action_once (once=?)"},
		"has events":           {sqlHasEvents, "sqlite_autoindex_event_1 (source=?)"},
		"list dead":            {list(event.Selector{State: event.Dead}), "event_open (state=?)"},
		"list pending":         {list(event.Selector{State: event.Pending}), "event_open (state=?)"},
		"list dead deliveries": {
			"SELECT DISTINCT event.seq FROM " + second.from + " WHERE " + second.where + " AND delivery.event < 9 ORDER BY delivery.event DESC LIMIT 50",
			"delivery_dead (event<?)",
		},
		"dead events of a group":     {died(deadEvents, 1), "event_failure (failure=? AND finished_at<?)"},
		"dead deliveries of a group": {died(deadDeliveries, 1), "delivery_failure (failure=? AND finished_at<?)"},
		"dead event of a group":      {lone(deadEvents), "event_failure (failure=?)"},
		"dead delivery of a group":   {lone(deadDeliveries), "delivery_failure (failure=?)"},
		"lane of a delivery":         {sqlDeliveryLaneOf, "INTEGER PRIMARY KEY (rowid=?)"},
		"dead events":                {died(deadEvents, 0), "event_died (finished_at<?)"},
		"dead deliveries":            {died(deadDeliveries, 0), "delivery_died (finished_at<?)"},
		"groups by size":             {groups(FailuresBySize), "failure_dead (dead>? AND dead<?)"},
		"groups by time":             {groups(FailuresByLast), "failure_last (last_at<?)"},
		"groups of a source":         {sqlGroups, "failure_dead (dead>?)"},
		"counts of groups":           {sqlDeadCounts, "failure_dead (dead>?)"},
		"hours of a group":           {sqlHoursOf, "PRIMARY KEY (failure=? AND hour>? AND hour<?)"},
		"death of a delivery":        {sqlDeathOfSent, "delivery USING INTEGER PRIMARY KEY (rowid=?)"},
		"ids from":                   {sqlIDsFrom, "sqlite_autoindex_event_1 (source=? AND account=? AND id>? AND id<?)"},
		"next account":               {sqlNextAccount, "sqlite_autoindex_event_1 (source=? AND account>?)"},
		"zones":                      {zones, "zone_words USING INTEGER PRIMARY KEY (rowid<?)"},
		"events of a zone":           {sqlZoneEvents, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		"values of a zone":           {sqlZoneValues, "PRIMARY KEY (event>? AND event<?)"},
		"duplicates":                 {sqlDuplicated, "event_duplicate (duplicate_at>? AND duplicate_at<?)"},
		"conflicts":                  {sqlConflicted, "sqlite_autoindex_conflict_1 (event<?)"},
		"count events":               {sqlEventStates, "event_open"},
		"count deliveries":           {sqlOutboxStates, "delivery_open"},
		"outbox of event":            {sqlOutbox, "delivery_event (event=?)"},
		"counts of its deliveries":   {sqlOutgoing, "delivery_event (event=?)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan := sc.plan(test.query)
			if !strings.Contains(plan, test.index) {
				t.Errorf("the plan does not use %s:\n%s", test.index, plan)
			}
			for _, line := range strings.Split(plan, "\n") {
				scan := strings.Contains(line, "SCAN") && !strings.Contains(line, " USING ") && !strings.Contains(line, "CONSTANT ROW") &&
					!strings.Contains(line, "(subquery") && // what it holds has a line of its own
					!strings.Contains(line, "SCAN chain") // of at most a page
				sorts := strings.Contains(line, "TEMP B-TREE FOR ORDER BY") && name != "open incidents" && name != "actions of event" &&
					name != "running actions" && name != "records by key" && name != "claim a probe" // of sixteen rows
				if scan || sorts {
					t.Errorf("the plan scans or sorts:\n%s", plan)
				}
			}
		})
	}
	if plan := sc.plan(list(event.Selector{Source: "gen"})); strings.Contains(plan, "TEMP B-TREE") {
		t.Errorf("a list by source sorts:\n%s", plan)
	}
}

// plan explains a query on the writer's connection, with nothing bound.
func (sc *scene) plan(query string) string {
	sc.t.Helper()
	var b strings.Builder
	must(sc.t, sc.write(context.Background(), work, 1, func(t *tx) error {
		b.Reset()
		return t.query("EXPLAIN QUERY PLAN "+query, make([]any, 12), func(r row) error {
			b.WriteString(r.text(3) + "\n")
			return nil
		})
	}))
	return b.String()
}

// The statements move rows along the table of moves, and nowhere else.
func TestEveryMoveIsLegal(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("a")
	seq := sc.detail("a").Seq
	moves := map[string]struct {
		to   event.State
		args []any
	}{
		sqlClaimEvents:    {event.Claimed, []any{"b.1", 0, start.UnixMilli(), 1}},
		sqlEventLater:     {event.Pending, []any{1, "", seq, "c"}},
		sqlReleaseEvent:   {event.Pending, []any{1, seq, "c"}},
		sqlTakeBackEvents: {event.Pending, []any{1, 3, "bb.", 10, 0}},
		sqlRequeue:        {event.Pending, []any{1, seq}},
		sqlDiscardEvent:   {event.Discarded, []any{1, seq}},
	}
	for _, to := range []event.State{event.Done, event.Ignored, event.Dead} {
		moves[sqlEventOver+" -- "+string(to)] = struct {
			to   event.State
			args []any
		}{to, []any{string(to), 1, "", seq, "c"}}
	}
	for _, from := range event.States() {
		for query, move := range moves {
			sc.force("event", "seq", seq, string(from), `attempts = 1`)
			moved := sc.change(query, move.args...)
			if moved != 0 && !event.CanMove(from, move.to) {
				t.Errorf("%s → %s was taken by %s", from, move.to, query)
			}
			takes := map[event.State]string{
				event.Pending: sqlClaimEvents, event.Claimed: sqlEventOver, event.Dead: sqlRequeue + sqlDiscardEvent,
				event.Done: sqlRequeue, event.Ignored: sqlRequeue,
			}
			if moved == 0 && strings.Contains(takes[from], strings.Split(query, " --")[0]) {
				t.Errorf("%s → %s was not taken by %s", from, move.to, query)
			}
		}
	}
}

// The same for deliveries.
func TestEveryMoveOfADeliveryIsLegal(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	_, d := sc.deliver("a")
	at := start.UnixMilli()
	type move struct {
		query string
		to    event.DeliveryState
		args  []any
	}
	moves := []move{
		{sqlClaimDue, event.DeliverySending, []any{"app", at, 1, "b.1"}},
		{sqlClaimProbe, event.DeliverySending, []any{"app", at, 1, "b.1"}},
		{sqlReleaseDelivery, event.DeliveryReady, []any{1, d.ID, "c"}},
		{sqlReadyAgain, event.DeliveryReady, []any{1, d.EventSeq}},
		{sqlDiscardDeliveries, event.DeliveryDiscarded, []any{1, d.EventSeq}},
		{sqlTakeBackDelivery, event.DeliveryReady, []any{"ready", 1, "", d.ID}},
		{sqlTakeBackDelivery, event.DeliveryInDoubt, []any{"in_doubt", nil, "", d.ID}},
	}
	for _, to := range []event.DeliveryState{event.DeliverySent, event.DeliveryDead, event.DeliveryInDoubt, event.DeliveryReady} {
		var next, finished any
		switch to {
		case event.DeliveryReady:
			next = 1
		case event.DeliverySent, event.DeliveryDead:
			finished = 1
		}
		moves = append(moves, move{sqlFinishDelivery, to, []any{string(to), next, finished, 1, 200, "", d.ID, "c"}})
	}
	for _, from := range event.DeliveryStates() {
		taken := 0
		for _, m := range moves {
			sc.force("delivery", "id", d.ID, string(from), `attempts = 1, tries = 1, probe = 0`)
			moved := sc.change(m.query, m.args...)
			taken += moved
			if moved != 0 && !event.CanMoveDelivery(from, m.to) {
				t.Errorf("%s → %s was taken by %s", from, m.to, m.query)
			}
		}
		live := from == event.DeliveryReady || from == event.DeliverySending || from == event.DeliveryDead
		if live && taken == 0 {
			t.Errorf("nothing moves a delivery that is %s", from)
		}
	}
}

// force puts a row into a state, with what the CHECKs ask for.
func (sc *scene) force(table, id string, row int64, state, also string) {
	sc.t.Helper()
	due, finished, claim := "NULL", "NULL", "NULL"
	switch state {
	case "pending", "ready":
		due = "1"
	case "claimed":
		claim = "'c'"
	case "sending":
		due, claim = "1", "'c'"
	case "done", "ignored", "dead", "discarded", "sent":
		finished = "1"
	}
	want(sc.t, "forced", sc.change("UPDATE "+table+" SET state = '"+state+"', next_at = "+due+", finished_at = "+finished+
		", claim = "+claim+", "+also+" WHERE "+id+" = ?", row), 1)
}

func (sc *scene) change(query string, args ...any) int {
	sc.t.Helper()
	var moved int64
	must(sc.t, sc.write(context.Background(), work, 1, func(t *tx) (err error) {
		if strings.Contains(query, "RETURNING") {
			moved = 0
			return t.query(query, args, func(row) error {
				moved++
				return nil
			})
		}
		moved, err = t.exec(query, args...)
		return err
	}))
	return int(moved)
}

// Times are integers: neither the zone of the process nor a change of it moves
// what is due.
func TestBugSQL07TimesAreIntegersUTC(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	zone := time.FixedZone("St Johns", -(3*3600 + 1800))
	sc.now = start.In(zone)
	delays := []time.Duration{5 * time.Second, 25 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}
	for i := range delays {
		sc.receive(numbered("e", i))
	}
	for i, w := range sc.claim(len(delays)) {
		must(t, sc.finish(event.Finish{Seq: w.Seq, Claim: w.Claim, Run: 1, State: event.Pending, NextAt: sc.now.Add(delays[i])}).Err)
	}
	sc.now = start.In(time.FixedZone("Kiritimati", 14*3600))
	sc.crash("boot2")
	for i, delay := range delays {
		sc.now = start.Add(delay - time.Millisecond)
		want(t, "early", len(sc.claim(1)), 0)
		sc.later(time.Millisecond)
		works := sc.claim(10)
		want(t, "on time", len(works), 1)
		want(t, "which", works[0].Key.ID, numbered("e", i))
		want(t, "received", works[0].ReceivedAt, start)
	}
	columns := 0
	err := sc.list(context.Background(), `SELECT m.name, c.name, c.type FROM sqlite_schema AS m, pragma_table_info(m.name) AS c
		WHERE m.type = 'table' AND (c.name LIKE '%\_at' ESCAPE '\' OR c.name IN ('at', 'since', 'start', 'last_success'))`, nil, func(r row) error {
		columns++
		want(t, r.text(0)+"."+r.text(1), r.text(2), "INTEGER")
		return nil
	})
	must(t, err)
	if columns < 20 {
		t.Errorf("looked at %d columns", columns)
	}
}
