package crash

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"creel/internal/testkit"
)

// outpost is a destination on one port that goes down and comes back: while it
// is down nobody listens there.
type outpost struct {
	address  string
	server   *http.Server
	busy     atomic.Int64
	mostBusy atomic.Int64

	mu   sync.Mutex
	came []arrival
}

type arrival struct {
	lane, number int
	at           time.Time
}

func newOutpost(t *testing.T) *outpost {
	t.Helper()
	o := &outpost{address: "127.0.0.1:0"}
	o.up(t)
	t.Cleanup(o.down)
	return o
}

func (o *outpost) up(t *testing.T) {
	t.Helper()
	testkit.Poll(t, 10*time.Second, "the port to be free", func() bool {
		listener, err := net.Listen("tcp", o.address)
		if err != nil {
			return false
		}
		o.address = listener.Addr().String()
		o.server = &http.Server{Handler: http.HandlerFunc(o.serve)}
		go func(s *http.Server) { _ = s.Serve(listener) }(o.server)
		return true
	})
}

func (o *outpost) down() { _ = o.server.Close() }

func (o *outpost) serve(w http.ResponseWriter, r *http.Request) {
	busy := o.busy.Add(1)
	defer o.busy.Add(-1)
	var one struct{ Lane, Number int }
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &one) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mostBusy.Store(max(o.mostBusy.Load(), busy))
	o.came = append(o.came, arrival{one.Lane, one.Number, time.Now()})
}

func (o *outpost) arrivals() []arrival {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]arrival(nil), o.came...)
}

const (
	outageLanes = 10
	outageRate  = 100
)

func outageConfiguration(url string) string {
	return fmt.Sprintf(`
listen   = "127.0.0.1:0"
database = "creel.db"

[admin]
listen = "127.0.0.1:0"

[log]
format = "json"

[[source]]
name    = "load"
secrets = ["env:LOAD_SECRET"]
%s
[destination.app]
url           = %q
secret        = "env:APP_SECRET"
max_in_flight = %d
rate          = "%d/s"

[[rule]]
name     = "in order"
order_by = "{body.lane}"
  [rule.forward]
  to = "app"
`, testkit.PlainVerify, url, inFlight, outageRate)
}

// TestGateD4ForReal has a real destination down for a while (-outage=3m for
// minutes of it), and the server restarted meanwhile: nothing is lost, dead or
// out of its order, the drain keeps to rate and limit, and there is one incident
// and one all-clear.
func TestGateD4ForReal(t *testing.T) {
	t.Parallel()
	canary := testkit.NewCanary(t)
	site := newOutpost(t)
	p := testkit.NewProcess(t, outageConfiguration("http://"+site.address+"/hook"), "LOAD_SECRET="+canary.Secret,
		"APP_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	p.Start(t)
	n := 0
	send := func(count int) {
		t.Helper()
		sender := testkit.Sender{URL: p.URL("/in/load"), Secret: canary.Secret, Sign: testkit.SignPlain}
		for range count {
			body := fmt.Sprintf(`{"id":"evt_%05d","type":"load.sent","lane":%d,"number":%d}`, n, n%outageLanes, n)
			if status, answer := sender.Send(t, "", []byte(body)); status != http.StatusOK {
				t.Fatalf("answered %d %q", status, answer)
			}
			n++
		}
	}
	send(20)
	testkit.Poll(t, 20*time.Second, "the first to arrive", func() bool { return len(site.arrivals()) == 20 })

	site.down()
	began := time.Now()
	send(200)
	testkit.Poll(t, 20*time.Second, "the hold", func() bool {
		return look(t, p.Dir, `SELECT count(*) FROM destination WHERE state = 'held'`) == 1
	})
	pause(t, p, *outage/2)
	if exit := p.Terminate(); exit.Code != 0 {
		t.Fatalf("the stop in the outage: %+v", exit)
	}
	p.Start(t)
	send(200)
	pause(t, p, max(*outage-time.Since(began), 0))
	if came := len(site.arrivals()); came != 20 {
		t.Fatalf("%d arrived in the outage", came-20)
	}
	site.mostBusy.Store(0)
	site.up(t)

	// The next probe comes no later than after as long again, or 5 minutes.
	testkit.Poll(t, min(2*time.Since(began), 5*time.Minute)+30*time.Second, "all of them to arrive", func() bool { return len(site.arrivals()) >= n })
	drained(t, p)
	testkit.Poll(t, 90*time.Second, "the all-clear", func() bool {
		return look(t, p.Dir, `SELECT count(*) FROM incident WHERE resolved_at IS NULL`) == 0
	})
	if exit := p.Terminate(); exit.Code != 0 {
		t.Errorf("the last stop: %+v", exit)
	}
	t.Logf("down for %v, back after %v", *outage, time.Since(began).Round(time.Second))
	checkOutage(t, p, site, n)
}

func checkOutage(t *testing.T, p *testkit.Process, site *outpost, n int) {
	t.Helper()
	came, last, perSecond := site.arrivals(), map[int]int{}, map[int64]int{}
	if len(came) != n {
		t.Errorf("%d arrivals of %d events", len(came), n)
	}
	for i, one := range came {
		if before, ok := last[one.lane]; ok && one.number != before+outageLanes {
			t.Errorf("lane %d: %d came after %d", one.lane, one.number, before)
		}
		last[one.lane] = one.number
		if i >= 20 {
			perSecond[one.at.Unix()]++
		}
	}
	for second, sent := range perSecond {
		if limit := outageRate + outageRate/10; sent > limit { // what may start at once, and clocks that round
			t.Errorf("%d in second %d, at a rate of %d/s", sent, second, outageRate)
		}
	}
	if most := site.mostBusy.Load(); most > inFlight/2 {
		t.Errorf("%d at once in the first minute, half of the limit is %d", most, inFlight/2)
	}
	for what, query := range map[string]string{
		"dead":                  `SELECT count(*) FROM delivery WHERE state <> 'sent'`,
		"spent on the outage":   `SELECT count(*) FROM delivery WHERE attempts > 4`,
		"incidents but one":     `SELECT count(*) - 1 FROM incident`,
		"incidents of another":  `SELECT count(*) FROM incident WHERE cause <> 'destination_down' OR resolved_at IS NULL`,
		"sent more than once":   `SELECT count(*) FROM (SELECT 1 FROM attempt WHERE outcome = 'ok' GROUP BY delivery HAVING count(*) > 1)`,
		"not enabled":           `SELECT count(*) FROM destination WHERE state <> 'enabled'`,
		"attempts in the hour":  `SELECT (SELECT count(*) FROM attempt) - (SELECT sum(n) FROM tally WHERE kind IN ('sent', 'failed'))`,
		"receipts but those":    fmt.Sprintf(`SELECT sum(n) - %d FROM tally WHERE kind = 'receipts'`, n),
		"events but those":      fmt.Sprintf(`SELECT sum(n) - %d FROM tally WHERE kind = 'new'`, n),
		"attempts without life": `SELECT count(*) FROM attempt WHERE outcome = 'unknown'`,
	} {
		if got := ask(t, p.Dir, query); got != 0 {
			t.Errorf("%s: %d", what, got)
		}
	}
	sound(t, p.Dir)
}
