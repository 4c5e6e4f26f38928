package cli_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"creel/internal/testkit"
)

// many is more than a bulk action takes in one transaction.
const many = 1300

// TestGateO2 kills the server while it replays many events in chunks: whatever
// moment that was, the events that run again are those that the audit trail
// names, and the next start ends the same action, which the command has waited
// for.
func TestGateO2(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.configure(t, strings.Replace(plain(s.app.URL, ""), "forward = \"app\"\n", "", 1)+`
[[rule]]
name = "orders"
key  = "{body.order}"
  [rule.forward]
  to = "app"
`)
	s.Start(t)
	s.flood(t, many)
	testkit.Poll(t, soon, "all events to be dead", func() bool {
		return s.count(t, `SELECT count(*) FROM event WHERE state = 'dead' AND run = 1`) == many
	})

	command := s.Begin(t, "replay", "--state", "dead", "--reason", "bug 412 fixed")
	testkit.Await(soon, func() bool { return s.count(t, `SELECT count(*) FROM action_item WHERE result = 'replayed'`) > 0 })
	s.Kill()
	for what, query := range map[string]string{
		"events that run again without an audit row": `SELECT count(*) FROM event WHERE run > 1 AND NOT EXISTS (SELECT 1 FROM action_item i WHERE i.event = event.seq AND i.result = 'replayed')`,
		"audit rows of events that do not run again": `SELECT count(*) FROM action_item i JOIN event ON event.seq = i.event WHERE i.result = 'replayed' AND event.run = 1`,
		"actions beyond the one":                     `SELECT count(*) - 1 FROM action`,
	} {
		if n := s.count(t, query); n != 0 {
			t.Errorf("after the kill: %d %s", n, what)
		}
	}
	t.Logf("killed after %d of %d", s.count(t, `SELECT count(*) FROM action_item WHERE result = 'replayed'`), many)

	s.Start(t)
	testkit.Poll(t, soon, "the action to end", func() bool {
		actions := lines[actionLine](t, s.Process, "audit", "--json")
		return len(actions) == 1 && actions[0].Done == many
	})
	if exit, said := command.Wait(), command.Stdout(); exit.Code != 0 || !strings.Contains(said, "Replayed: 1300 of 1300, action 1") {
		t.Errorf("the command ended with %+v, %q, %q", exit, said, command.Stderr())
	}
	a := lines[actionLine](t, s.Process, "audit", "--json")[0]
	if a.Reason != "bug 412 fixed" || !strings.HasPrefix(a.Actor, "cli:") || a.Selected != many || a.Refused != 0 {
		t.Errorf("audited %+v", a)
	}
	if items := lines[itemLine](t, s.Process, "audit", "1", "--json"); len(items) != many {
		t.Errorf("%d keys are audited", len(items))
	}
	if n := s.count(t, `SELECT count(*) FROM event WHERE run <> 2`); n != 0 {
		t.Errorf("%d events are not in their second run", n)
	}
}

// flood sends events from several senders at once.
func (s *site) flood(t *testing.T, n int) {
	t.Helper()
	var senders sync.WaitGroup
	for worker := range 8 {
		senders.Go(func() {
			l := &load{url: s.URL("/in/shop")}
			for i := worker; i < n; i += 8 {
				if status := l.once(t, s.canary.Secret, fmt.Sprint(i)); status != 200 {
					t.Errorf("event %d: answered %d", i, status)
				}
			}
		})
	}
	senders.Wait()
}

// count runs one statement on the file, beside a server or without one.
func (s *site) count(t *testing.T, query string) int {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.Dir, "creel.db")+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var n int
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
