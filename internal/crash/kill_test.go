package crash

import (
	"math/rand/v2"
	"testing"
	"time"

	"creel/internal/testkit"
)

// TestGateF1 kills the server at random moments under load. Nothing that was
// acknowledged may be lost, no event may be delivered under two identities,
// and no send may be repeated but those that were in flight at a kill.
func TestGateF1(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	p, canary := serve(t, sink.server.URL, "")
	c := startClients(t, 3, canary.Secret)

	random := rand.New(rand.NewPCG(1, uint64(*kills)))
	atRisk := 0
	for range *kills {
		p.Start(t)
		c.point(p.URL("/in/load"))
		pause(t, p, time.Duration(20+random.IntN(231))*time.Millisecond)
		p.Kill()
		c.url.Store(nil)
		atRisk += ask(t, p.Dir, `SELECT count(*) FROM delivery WHERE state = 'sending'`)
		settle(t, sink)
	}
	c.end()

	p.Start(t)
	acked := c.acknowledged()
	testkit.Await(drainLimit, func() bool { n, _ := sink.missing(acked); return n == 0 })
	drained(t, p)
	if exit := p.Terminate(); exit.Code != 0 {
		t.Errorf("the last stop: %+v", exit)
	}

	got := sink.tally()
	t.Logf("%d kills: %d acknowledged (%d repeats), %d requests without an answer, %d refused; %d sends, %d extra of at most %d in flight",
		*kills, len(acked), c.duplicates, c.broken, c.refused, got.sends, got.extra, atRisk)
	if len(acked) < *kills {
		t.Errorf("only %d events in %d lives: the run proves nothing", len(acked), *kills)
	}
	if n := kept(t, p.Dir, acked); n != 0 {
		t.Errorf("lost %d acknowledged events", n)
	}
	if n, first := sink.missing(acked); n != 0 {
		t.Errorf("%d acknowledged events never reached the destination, the first is %s", n, first)
	}
	if got.identities != 0 || got.shared != 0 {
		t.Errorf("%d events arrived under two identities, %d identities carried two events", got.identities, got.shared)
	}
	if got.sameLife != 0 {
		t.Errorf("%d sends were repeated within one life of the server", got.sameLife)
	}
	if limit := min(atRisk, *kills*inFlight); got.extra > limit {
		t.Errorf("%d extra sends, at most %d were in flight at the kills", got.extra, limit)
	}
	if len(c.wrong) != 0 {
		t.Errorf("a sender was turned away: %v", c.wrong[0])
	}
	sound(t, p.Dir)
}

// pause lets the server work for a while; a server that ends by itself
// meanwhile fails the test.
func pause(t *testing.T, p *testkit.Process, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.Ended():
		t.Fatalf("the server ended by itself: %+v\nstderr: %s", p.Wait(), tail(p.Stderr()))
	}
}

// settle waits until the destination has seen the end of every connection of
// the life that is over, and begins the next one.
func settle(t *testing.T, s *sink) {
	t.Helper()
	testkit.Poll(t, 10*time.Second, "the dead server's connections to end", func() bool { return s.open.Load() == 0 })
	s.life.Add(1)
}

// drained waits until no work is left.
func drained(t *testing.T, p *testkit.Process) {
	t.Helper()
	left := 0
	ok := testkit.Await(drainLimit, func() bool {
		left = look(t, p.Dir, `SELECT (SELECT count(*) FROM event WHERE state IN ('pending', 'claimed')) +
			(SELECT count(*) FROM delivery WHERE state IN ('waiting', 'ready', 'sending'))`)
		return left == 0
	})
	if !ok {
		t.Errorf("%d events and deliveries are still unfinished", left)
	}
}

func tail(text []byte) []byte {
	const most = 4000
	if len(text) > most {
		return text[len(text)-most:]
	}
	return text
}
