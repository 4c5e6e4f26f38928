package crash

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"creel/internal/testkit"
)

// stopLimit is how long a stop may take.
const stopLimit = 10 * time.Second

// TestGateO11 stops the server under load: exit 0 in time, nothing lost,
// nothing sent twice, no attempt burnt.
func TestGateO11(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	p, canary := serve(t, sink.server.URL, "")
	c := startClients(t, 3, canary.Secret)

	random := rand.New(rand.NewPCG(2, uint64(*stops)))
	var slowest time.Duration
	for n := range *stops {
		p.Start(t)
		c.point(p.URL("/in/load"))
		pause(t, p, time.Duration(20+random.IntN(331))*time.Millisecond)
		exit := p.Terminate()
		c.url.Store(nil)
		slowest = max(slowest, exit.After)
		if exit.Code != 0 || exit.After > stopLimit {
			t.Fatalf("stop %d: %+v\nstderr: %s", n, exit, tail(p.Stderr()))
		}
		if left := ask(t, p.Dir, `SELECT (SELECT count(*) FROM event WHERE state = 'claimed') + (SELECT count(*) FROM delivery WHERE state = 'sending')`); left != 0 {
			t.Errorf("stop %d left %d claims behind", n, left)
		}
		settle(t, sink)
	}
	c.end()

	p.Start(t)
	acked := c.acknowledged()
	testkit.Await(drainLimit, func() bool { n, _ := sink.missing(acked); return n == 0 })
	drained(t, p)
	if exit := p.Terminate(); exit.Code != 0 || exit.After > stopLimit {
		t.Errorf("the last stop: %+v", exit)
	}

	got := sink.tally()
	t.Logf("%d stops, the slowest took %v: %d acknowledged, %d sends, %d extra", *stops, slowest, len(acked), got.sends, got.extra)
	if len(acked) < *stops {
		t.Errorf("only %d events in %d lives: the run proves nothing", len(acked), *stops)
	}
	if n := kept(t, p.Dir, acked); n != 0 {
		t.Errorf("lost %d acknowledged events", n)
	}
	if n, first := sink.missing(acked); n != 0 {
		t.Errorf("%d acknowledged events never reached the destination, the first is %s", n, first)
	}
	if got.extra != 0 || got.identities != 0 {
		t.Errorf("%d sends were repeated, %d events arrived under two identities", got.extra, got.identities)
	}
	if n := ask(t, p.Dir, `SELECT count(*) FROM delivery WHERE attempts > 1 OR tries > 1`); n != 0 {
		t.Errorf("%d deliveries spent an attempt on a stop", n)
	}
	if n := ask(t, p.Dir, `SELECT count(*) FROM event WHERE attempts > 1`); n != 0 {
		t.Errorf("%d events spent an attempt on a stop", n)
	}
	sound(t, p.Dir)
}

// TestBugOPS03StopDuringStart sends SIGTERM while the server is starting. As
// soon as the program has touched its database it owes a clean exit; before
// that the runtime may not have taken over the signal yet.
func TestBugOPS03StopDuringStart(t *testing.T) {
	t.Parallel()
	destination := testkit.NewDestination(t)
	for delay := time.Duration(0); delay <= 100*time.Millisecond; delay += 10 * time.Millisecond {
		p, _ := serve(t, destination.URL, "")
		p.Launch(t)
		timer := time.NewTimer(delay)
		<-timer.C
		began := exists(filepath.Join(p.Dir, "creel.db"))
		exit := p.Terminate()
		early := !began && exit.Signal == syscall.SIGTERM
		if (exit.Code != 0 && !early) || exit.After > stopLimit {
			t.Errorf("SIGTERM after %v (database touched: %v): %+v\nstderr: %s", delay, began, exit, p.Stderr())
		}
	}

	p, _ := serve(t, destination.URL, "")
	p.Launch(t)
	testkit.Poll(t, 20*time.Second, "the database file", func() bool { return exists(filepath.Join(p.Dir, "creel.db")) })
	if exit := p.Terminate(); exit.Code != 0 || exit.After > stopLimit {
		t.Errorf("SIGTERM while the database is being made: %+v\nstderr: %s", exit, p.Stderr())
	}
	p.Start(t)
	if exit := p.Terminate(); exit.Code != 0 {
		t.Errorf("the next start and stop: %+v", exit)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
