package crash

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
)

const (
	// intakeRate is how many new events a second come in beside the replay.
	intakeRate = 1000
	// lanes is over how many lanes a tenth of the replayed events goes.
	lanes = 20
	// fullSpeed is how many events are replayed without a pace of its own: fewer
	// are through before anything can be killed.
	fullSpeed = 15_000
	// bulkLimit is how long anything of the bulk replay may take.
	bulkLimit = 10 * time.Minute
)

// faulty is a configuration whose rules for the source "old" look for a member
// that its events do not have, but for the name under which they have it.
func faulty(destination, member string) string {
	return strings.Replace(configuration(destination, ""), "[[source]]", fmt.Sprintf(`
[[source]]
name    = "old"
secrets = ["env:LOAD_SECRET"]
%s  object    = "body.object"
[[rule]]
name  = "plain"
match = { source = "old", types = ["old.plain"] }
key   = "{body.%[2]s}/plain"
  [rule.forward]
  to = "app"

[[rule]]
name     = "in order"
match    = { source = "old", types = ["old.laned"] }
key      = "{body.%[2]s}/laned"
order_by = "{object}"
on_dead  = "skip"
  [rule.forward]
  to = "app"

[[source]]`, testkit.PlainVerify, member), 1)
}

// TestGateO13 replays many dead events beside a thousand new ones a second. The
// command is killed, the same command follows the replay, the server is killed
// under it and starts again: no sender is told to come later, every event is
// audited once, runs once more, goes out, and those of a lane in its order.
func TestGateO13(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	p, canary := serve(t, sink.server.URL, "")
	configure(t, p, faulty(sink.server.URL, "order"))
	p.Start(t)
	old := bringOld(t, p, *bulk)
	waitFor(t, "all old events to be dead", func() bool {
		return look(t, p.Dir, `SELECT count(*) FROM event WHERE source = 'old' AND state = 'dead'`) == *bulk
	})
	configure(t, p, faulty(sink.server.URL, "number"))
	if code, _, stderr := p.Run(t, "reload"); code != 0 {
		t.Fatalf("reload: exit %d: %s", code, stderr)
	}

	fresh := startSteady(t, "load", canary.Secret, intakeRate)
	fresh.point(p.URL("/in/load"))
	began := time.Now()
	command := []string{"replay", "--source", "old", "--state", "dead", "--reason", "bug 412 fixed"}
	if *bulk < fullSpeed {
		command = append(command, "--rate", fmt.Sprintf("%d/s", *bulk/3))
	}
	first := p.Begin(t, command...)
	progress(t, p, first, *bulk/10)
	first.Kill()
	second := p.Begin(t, command...)
	progress(t, p, second, *bulk/3)
	fresh.hold()
	p.Kill()
	killedAt := ask(t, p.Dir, `SELECT done FROM action WHERE kind = 'replay'`)
	atRisk := ask(t, p.Dir, `SELECT count(*) FROM delivery WHERE state = 'sending'`)
	settle(t, sink)
	p.Start(t)
	fresh.point(p.URL("/in/load"))
	<-second.Ended()
	replayed := time.Since(began)
	exit := second.Wait()
	fresh.end()
	// The rest goes out.
	waitFor(t, "all of it to be sent", func() bool {
		return look(t, p.Dir, `SELECT (SELECT count(*) FROM event WHERE state IN ('pending', 'claimed')) +
			(SELECT count(*) FROM delivery WHERE state IN ('waiting', 'ready', 'sending'))`) == 0
	})
	t.Logf("%d events replayed in %v (killed after %d), all sent after %v; meanwhile %d new events: p50 %v, p99 %v, the slowest %v; %d refused, %d without an answer",
		*bulk, replayed.Round(time.Millisecond), killedAt, time.Since(began).Round(time.Millisecond), len(fresh.acked),
		fresh.percentile(.5), fresh.percentile(.99), fresh.percentile(1), fresh.refused, fresh.broken)
	if end := p.Terminate(); end.Code != 0 {
		t.Errorf("the last stop: %+v", end)
	}

	if fresh.refused > 0 || len(fresh.wrong) > 0 {
		t.Errorf("%d senders were told to come later, %d were turned away: %v", fresh.refused, len(fresh.wrong), fresh.wrong)
	}
	if said := second.Stdout(); exit.Code != 0 || !strings.Contains(said, fmt.Sprintf("Replayed: %d of %d, action 2 in the audit trail.", *bulk, *bulk)) {
		t.Errorf("the command ended with %+v, %q, %q", exit, said, second.Stderr())
	}
	auditedOnce(t, p.Dir, *bulk)
	arrived(t, p.Dir, sink, append(old, fresh.acked...), atRisk)
	inOrder(t, sink)
	sound(t, p.Dir)
}

// bringOld imports the events that are going to die, and returns their ids.
func bringOld(t *testing.T, p *testkit.Process, n int) (ids []string) {
	t.Helper()
	file, err := os.Create(filepath.Join(p.Dir, "old.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(file)
	for i := range n {
		id, kind := fmt.Sprintf("old_%07d", i), "old.plain"
		if i%10 == 0 {
			kind = "old.laned"
		}
		ids = append(ids, id)
		fmt.Fprintf(out, `{"id":%q,"type":%q,"number":"%d","object":"lane_%d","pad":"%0256d"}`+"\n", id, kind, i, i/10%lanes, 0)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	imported := p.Begin(t, "import", "old", "old.jsonl")
	if exit := imported.Wait(); exit.Code != 0 {
		t.Fatalf("import: %+v: %s", exit, imported.Stderr())
	}
	return ids
}

func configure(t *testing.T, p *testkit.Process, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.Dir, "creel.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// waitFor looks now and then, so that looking takes nothing from the server.
func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline, tick := time.NewTimer(bulkLimit), time.NewTicker(50*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited %v for: %s", bulkLimit, what)
		}
	}
}

// progress waits until the action has done so many events, with the command that
// follows it.
func progress(t *testing.T, p *testkit.Process, command *testkit.Command, n int) {
	t.Helper()
	waitFor(t, fmt.Sprintf("the replay to have done %d", n), func() bool {
		select {
		case <-command.Ended():
			t.Fatalf("the command ended before the replay did: %+v: %s%s", command.Wait(), command.Stdout(), command.Stderr())
		default:
		}
		return look(t, p.Dir, `SELECT ifnull(max(done), 0) FROM action WHERE kind = 'replay'`) >= n
	})
}

// auditedOnce looks for the one action that names each event once.
func auditedOnce(t *testing.T, dir string, n int) {
	t.Helper()
	for query, want := range map[string]int{
		`SELECT count(*) FROM action WHERE kind = 'replay'`:                                    1,
		`SELECT done FROM action WHERE kind = 'replay' AND finished_at IS NOT NULL`:            n,
		`SELECT count(*) FROM action_item`:                                                     n,
		`SELECT count(DISTINCT event) FROM action_item WHERE result = 'replayed'`:              n,
		`SELECT count(*) FROM event WHERE source = 'old' AND run = 2 AND state = 'done'`:       n,
		`SELECT count(*) FROM delivery d JOIN event e ON e.seq = d.event WHERE source = 'old'`: n,
	} {
		if got := ask(t, dir, query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}

// arrived looks that everything came to the destination, and nothing twice but
// what was in flight at the kill.
func arrived(t *testing.T, dir string, s *sink, ids []string, atRisk int) {
	t.Helper()
	if n, first := s.missing(ids); n != 0 {
		t.Errorf("%d events never reached the destination, the first is %s", n, first)
	}
	got := s.tally()
	if got.identities != 0 || got.shared != 0 || got.sameLife != 0 || got.extra > atRisk {
		t.Errorf("%+v, %d were in flight at the kill", got, atRisk)
	}
	if n := ask(t, dir, `SELECT count(*) FROM delivery WHERE state <> 'sent'`); n != 0 {
		t.Errorf("%d deliveries are not sent", n)
	}
}

// inOrder looks that the events of a lane arrived in the order of their receipt.
func inOrder(t *testing.T, s *sink) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	last, seen := map[int]int{}, map[string]bool{}
	for _, one := range s.sends {
		var number int
		if _, err := fmt.Sscanf(one.event, "old_%d", &number); err != nil || number%10 != 0 || seen[one.event] {
			continue
		}
		seen[one.event] = true
		lane := number / 10 % lanes
		if before, any := last[lane]; any && number < before {
			t.Errorf("lane %d: %d came after %d", lane, number, before)
		}
		last[lane] = number
	}
	if len(last) == 0 {
		t.Error("no event of a lane arrived")
	}
}
