package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"creel/internal/testkit"
)

// planLine is one event of a dry run.
type planLine struct {
	Event, State, Outcome, Error string
	Effects                      []struct{ Effect, Rule, Key, Destination, Would string }
}

const dead = 20

// TestGateO1 replays 20 dead events: the dry run tells exactly what the run
// then does, and changes not a byte.
func TestGateO1(t *testing.T) {
	t.Parallel()
	t.Run("dead deliveries", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, "")
		s.app.Script(testkit.Answer{Status: 422})
		s.Start(t)
		for n := range dead {
			s.send(t, fmt.Sprintf(`{"id":"evt_%d","type":"order.paid"}`, n))
		}
		await(t, s.Process, dead, "deliveries", "--state", "dead", "--json")
		firstIDs := s.app.Counts()
		s.app.Script(testkit.Answer{Status: 204})

		s.replayDead(t, "send again: it died at attempt 1", "--dry-run=false")
		for id, n := range s.app.Counts() {
			if firstIDs[id] != 1 || n != 2 {
				t.Errorf("%s was sent %d times in the first run and %d times in all", id, firstIDs[id], n)
			}
		}
	})
	t.Run("dead events", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, "")
		rule := func(place string) string {
			return strings.Replace(plain(s.app.URL, ""), "forward = \"app\"\n", "", 1) + fmt.Sprintf(`
[[rule]]
name = "orders"
key  = "{%s}/order"
  [rule.forward]
  to = "app"
`, place)
		}
		s.configure(t, rule("body.order"))
		s.Start(t)
		for n := range dead {
			s.send(t, fmt.Sprintf(`{"id":"evt_%d","type":"order.paid","number":%d}`, n, n))
		}
		await(t, s.Process, dead, "events", "--state", "dead", "--json")
		s.configure(t, rule("body.number"))
		command(t, s.Process, 0, "reload")

		s.replayDead(t, "send")
		if counts := s.app.Counts(); len(counts) != dead {
			t.Errorf("%d deliveries arrived", len(counts))
		}
	})
}

// replayDead makes the dry run, looks that nothing came of it, and then the
// real one.
func (s *site) replayDead(t *testing.T, would string, really ...string) {
	t.Helper()
	before, calls := s.files(t), s.app.Count()
	plan := lines[planLine](t, s.Process, "replay", "--state", "dead", "--dry-run", "--json")
	text := command(t, s.Process, 0, "replay", "--state", "dead", "--dry-run")
	if !strings.Contains(text, "20 events would be replayed. Nothing has been changed.") {
		t.Errorf("the dry run says:\n%s", text)
	}
	for name, was := range before {
		if is := s.files(t)[name]; !bytes.Equal(was, is) {
			t.Errorf("the dry run changed %s: %d bytes, then %d", name, len(was), len(is))
		}
	}
	if n := s.app.Count(); n != calls {
		t.Errorf("the dry run sent %d times", n-calls)
	}
	var planned []string
	for _, line := range plan {
		planned = append(planned, line.Event)
		if line.Outcome != "replay" || line.Error != "" || len(line.Effects) != 1 || line.Effects[0].Would != would ||
			line.Effects[0].Effect != "forward" || line.Effects[0].Destination != "app" || line.Effects[0].Key == "" {
			t.Errorf("planned %+v", line)
		}
	}
	slices.Sort(planned)
	if len(slices.Compact(planned)) != dead {
		t.Fatalf("the dry run names %d events: %v", len(planned), planned)
	}

	said := command(t, s.Process, 0, append([]string{"replay", "--state", "dead", "--reason", "bug 412 fixed"}, really...)...)
	if !strings.Contains(said, "Replayed: 20 of 20, action 1 in the audit trail.") {
		t.Errorf("the replay says %q", said)
	}
	await(t, s.Process, dead, "deliveries", "--state", "sent", "--json")
	if n := len(s.app.Requests()) - calls; n != dead {
		t.Errorf("%d sends for %d events", n, dead)
	}
	s.audited(t, planned)
	if said := command(t, s.Process, 4, "replay", "--state", "dead"); !strings.Contains(said, "nothing matched") {
		t.Errorf("the second replay says %q", said)
	}
}

// audited looks for the one action of the replay, with the keys of its plan.
func (s *site) audited(t *testing.T, planned []string) {
	t.Helper()
	actions := lines[actionLine](t, s.Process, "audit", "--json")
	if len(actions) != 1 {
		t.Fatalf("%d actions: %+v", len(actions), actions)
	}
	a := actions[0]
	if a.Action != "replay" || !strings.HasPrefix(a.Actor, "cli:") || a.Reason != "bug 412 fixed" || a.Selected != dead || a.Done != dead || a.Refused != 0 {
		t.Errorf("audited %+v", a)
	}
	var keys []string
	for _, item := range lines[itemLine](t, s.Process, "audit", fmt.Sprint(a.ID), "--json") {
		keys = append(keys, item.Event)
		if item.Result != "replayed" {
			t.Errorf("audited %+v", item)
		}
	}
	slices.Sort(keys)
	if !slices.Equal(keys, planned) {
		t.Errorf("the dry run named\n%v\nthe replay took\n%v", planned, keys)
	}
}

// files reads the database and its WAL, once the server has come to rest.
func (s *site) files(t *testing.T) map[string][]byte {
	t.Helper()
	read := func() map[string][]byte {
		all := map[string][]byte{}
		for _, name := range []string{"creel.db", "creel.db-wal"} {
			data, err := os.ReadFile(filepath.Join(s.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = data
		}
		return all
	}
	last := read()
	same := 0
	testkit.Poll(t, soon, "the database to come to rest", func() bool {
		now := read()
		same++
		for name := range now {
			if !bytes.Equal(now[name], last[name]) {
				same = 0
			}
		}
		last = now
		return same > 10
	})
	return last
}

// TestBugCFG07DryRunWithoutAServer makes the dry run on a database that no
// server has open, by key, by range and by state: nothing is sent, nothing is
// written, and the run after it takes what was named.
func TestBugCFG07DryRunWithoutAServer(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.app.Script(testkit.Answer{Status: 422})
	s.Start(t)
	for _, id := range []string{"a", "b", "c"} {
		s.send(t, fmt.Sprintf(`{"id":%q,"type":"order.paid"}`, id))
	}
	await(t, s.Process, 3, "deliveries", "--state", "dead", "--json")
	s.Terminate()
	before, err := os.ReadFile(filepath.Join(s.Dir, "creel.db"))
	if err != nil {
		t.Fatal(err)
	}
	for want, args := range map[int][]string{
		1: {"shop//a"}, 2: {"shop//a", "shop//c"}, 3: {"--since", "1h"},
	} {
		if got := lines[planLine](t, s.Process, append([]string{"replay", "--dry-run", "--json"}, args...)...); len(got) != want {
			t.Errorf("%v names %d events, want %d", args, len(got), want)
		}
	}
	command(t, s.Process, 4, "replay", "--dry-run", "--until", "1h")
	after, err := os.ReadFile(filepath.Join(s.Dir, "creel.db"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) || s.app.Count() != 3 {
		t.Errorf("the dry runs changed the file (%v) or sent (%d sends)", !bytes.Equal(before, after), s.app.Count()-3)
	}
	if wal, err := os.Stat(filepath.Join(s.Dir, "creel.db-wal")); err == nil && wal.Size() > 0 {
		t.Errorf("a dry run wrote %d bytes into the WAL", wal.Size())
	}

	said := command(t, s.Process, 0, "replay", "shop//b")
	if !strings.Contains(said, "Replayed: 1 of 1") || !strings.Contains(said, "No server runs on this database") {
		t.Errorf("said %q", said)
	}
	s.app.Script(testkit.Answer{Status: 204})
	s.Start(t)
	await(t, s.Process, 1, "deliveries", "--state", "sent", "--json")
	await(t, s.Process, 2, "deliveries", "--state", "dead", "--json")
	if counts := s.app.Count(); counts != 4 {
		t.Errorf("%d sends", counts)
	}
}
