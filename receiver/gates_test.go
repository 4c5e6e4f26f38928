package receiver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
	"creel/internal/testkit"
	"creel/receiver"
	"creel/store"
)

func TestGateR1NothingUnprovedIsStored(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	body := []byte(`{"type":"user.created","id":"u1"}`)
	at := time.Now()
	header := func(secret string, at time.Time) http.Header {
		h := http.Header{}
		testkit.SignStandard(h, secret, "msg_1", body, at)
		return h
	}
	unsigned := header(standardSecret, at)
	unsigned.Del("webhook-signature")
	empty := header(standardSecret, at)
	empty.Set("webhook-signature", "")
	first := ""
	for name, row := range map[string]struct {
		header http.Header
		body   string
	}{
		"tampered body":     {header(standardSecret, at), `{"type":"user.created","id":"u2"}`},
		"10 minutes old":    {header(standardSecret, at.Add(-10*time.Minute)), string(body)},
		"in the future":     {header(standardSecret, at.Add(10*time.Minute)), string(body)},
		"wrong secret":      {header("whsec_"+strings.Repeat("A", 44), at), string(body)},
		"no signature":      {unsigned, string(body)},
		"empty signature":   {empty, string(body)},
		"nothing but bytes": {nil, "\x00\xff"},
	} {
		got := r.do(t, "POST", "/in/std", row.header, []byte(row.body))
		got.header.Del("Date")
		text := fmt.Sprintf("%+v", got)
		if first == "" {
			first = text
		}
		if got.status != 401 || text != first {
			t.Errorf("%s: %s, want %s", name, text, first)
		}
	}
	if all := r.events(t); len(all) != 0 {
		t.Errorf("%d events are stored", len(all))
	}
	wantStatus(t, r.do(t, "POST", "/in/std", header(standardSecret, at), body), 200)
}

func TestGateR2DuplicatesAreOneEvent(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	for range 5 {
		wantStatus(t, r.sendGen(t, "gen", `{"id":"one after the other","type":"t"}`), 200)
	}
	var wait sync.WaitGroup
	for range 5 {
		wait.Go(func() { wantStatus(t, r.sendGen(t, "gen", `{"id":"at once","type":"t"}`), 200) })
	}
	wait.Wait()
	for _, e := range r.events(t) {
		if e.Duplicates != 4 {
			t.Errorf("%s has %d duplicates", e.Key, e.Duplicates)
		}
	}
	if n := len(r.events(t)); n != 2 {
		t.Errorf("%d events", n)
	}
	if counts := countsOf(r.desk, "gen"); counts.Events["new"] != 2 || counts.Events["duplicate"] != 8 {
		t.Errorf("counts %+v", counts)
	}
	if n := r.log.count("duplicate received"); n != 8 {
		t.Errorf("%d lines about duplicates", n)
	}
	for n := 1; n <= 4; n++ {
		if !strings.Contains(r.log.String(), fmt.Sprintf(`"duplicates":%d,`, n)) {
			t.Errorf("no line with the count %d", n)
		}
	}
}

// TestGateR2ManyAtOnce: 10,000 ids, five copies of each at once.
func TestGateR2ManyAtOnce(t *testing.T) {
	t.Parallel()
	ids := 10_000
	if testing.Short() {
		ids = 500
	}
	r := openReal(t, store.Options{}, deskOptions{connections: 64, level: zerolog.ErrorLevel})
	var next, bad atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for n := next.Add(1); n <= int64(ids); n = next.Add(1) {
				body := fmt.Sprintf(`{"id":"e-%d","type":"t"}`, n)
				var copies sync.WaitGroup
				for range 5 {
					copies.Go(func() {
						if r.sendGen(t, "gen", body).status != 200 {
							bad.Add(1)
						}
					})
				}
				copies.Wait()
			}
		})
	}
	wait.Wait()
	stats, err := r.store.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	counts := countsOf(r.desk, "gen")
	if bad.Load() != 0 || stats.Events[event.Pending] != int64(ids) || counts.Events["new"] != int64(ids) || counts.Events["duplicate"] != int64(4*ids) {
		t.Errorf("%d refused, stats %+v, counts %+v", bad.Load(), stats, counts)
	}
}

// TestGateR4LockedByAnotherProcess: an outside writer holds the database.
func TestGateR4LockedByAnotherProcess(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{BusyTimeout: 200 * time.Millisecond}, deskOptions{
		receiver: receiver.Options{StoreWait: 2 * time.Second},
	})
	wantStatus(t, r.sendGen(t, "gen", `{"id":"before"}`), 200)
	unlock := lock(t, r.path)
	start := time.Now()
	var wait sync.WaitGroup
	for n := range 8 {
		wait.Go(func() {
			got := r.sendGen(t, "gen", fmt.Sprintf(`{"id":"while-%d"}`, n))
			wantStatus(t, got, 503)
			if got.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		})
	}
	wait.Wait()
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("the answers took %v", took)
	}
	if n := r.log.count("a verified request was not stored"); n == 0 {
		t.Error("the trouble is not in the log")
	}
	unlock()
	testkit.Poll(t, 10*time.Second, "the store to recover by itself", func() bool {
		return r.sendGen(t, "gen", `{"id":"after"}`).status == 200
	})
}

// TestGateR4StoreClosed: a store that takes nothing is 503 at once.
func TestGateR4StoreClosed(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, r.sendGen(t, "gen", `{"id":"1"}`), 503)
}

// forgetful is an inbox whose commit succeeds and whose answer is lost.
type forgetful struct {
	receiver.Inbox
	lose atomic.Bool
}

func (f *forgetful) Accept(ctx context.Context, receipt *event.Receipt) (event.Accepted, error) {
	accepted, err := f.Inbox.Accept(ctx, receipt)
	if f.lose.Load() && err == nil {
		return event.Accepted{}, event.ErrUnavailable
	}
	return accepted, err
}

func TestGateR5CommittedButUnanswered(t *testing.T) {
	t.Parallel()
	lossy := &forgetful{}
	r := openReal(t, store.Options{}, deskOptions{inbox: lossy})
	lossy.Inbox = r.store
	lossy.lose.Store(true)
	wantStatus(t, r.sendGen(t, "gen", `{"id":"1","type":"t"}`), 503)
	if _, pending, err := r.store.NextEvent(context.Background()); !pending || err != nil {
		t.Errorf("the committed event is not found: %v, %v", pending, err)
	}
	lossy.lose.Store(false)
	wantStatus(t, r.sendGen(t, "gen", `{"id":"1","type":"t"}`), 200)
	if all := r.events(t); len(all) != 1 || all[0].Duplicates != 1 || all[0].State != event.Pending {
		t.Errorf("events %+v", all)
	}
}

func TestGateR6ConflictKeepsTheFirstBody(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	first := `{"id":"x-same","amount":10}`
	wantStatus(t, r.sendGen(t, "gen", first), 200)
	for range 3 {
		wantStatus(t, r.sendGen(t, "gen", `{"id":"x-same","amount":99}`), 200)
	}
	detail := r.detail(t, event.Key{Source: "gen", ID: "x-same"})
	if string(detail.Body) != first || len(detail.Conflicts) != 1 || string(detail.Conflicts[0].Body) != `{"id":"x-same","amount":99}` {
		t.Errorf("detail %+v", detail)
	}
	incidents, err := r.store.Incidents(context.Background(), true)
	if err != nil || len(incidents) != 1 || incidents[0].Cause != event.CauseConflict {
		t.Errorf("incidents %+v, %v", incidents, err)
	}
	if counts := countsOf(r.desk, "gen"); counts.Results["conflict"] != 3 || r.log.count("same event key with another body") != 3 {
		t.Errorf("counts %+v", counts)
	}
}

func TestGateR9SameBodyUnderAFreshDelivery(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	body := []byte(`{"action":"opened","repository":{"owner":{"login":"o"}}}`)
	for _, delivery := range []string{"d-1", "d-1", "d-2", "d-3"} {
		header := http.Header{}
		testkit.SignGitHub(header, bugSecret, delivery, body, time.Time{})
		wantStatus(t, r.do(t, "POST", "/in/gh", header, body), 200)
	}
	if all := r.events(t); len(all) != 1 || all[0].Key.ID != "d-1" || all[0].Duplicates != 3 {
		t.Errorf("events %+v", all)
	}
}

// TestGateR10DispatcherContract: a dispatcher that knows nothing but statuses.
func TestGateR10DispatcherContract(t *testing.T) {
	t.Parallel()
	lossy := &forgetful{}
	r := openReal(t, store.Options{}, deskOptions{inbox: lossy})
	lossy.Inbox = r.store
	for _, name := range []string{"std", "std409"} {
		for _, down := range []int{0, 1, 3, 10} {
			d := dispatcher{t: t, room: r, path: "/in/" + name, id: fmt.Sprintf("msg-%s-%d", name, down)}
			d.run(func(attempt int) { lossy.lose.Store(attempt <= down) })
			if !d.delivered || d.attempts != down+1 {
				t.Errorf("%s, store down %d times: delivered %v after %d attempts", name, down, d.delivered, d.attempts)
			}
			want := 200
			if down > 0 && name == "std409" {
				want = 409 // the lost answers were commits
			}
			if d.status != want {
				t.Errorf("%s, store down %d times: %d, want %d", name, down, d.status, want)
			}
			if wait := time.Duration(1<<down-1) * time.Second; d.waited != wait {
				t.Errorf("waited %v, want %v", d.waited, wait)
			}
			lossy.lose.Store(false)
			d.attempt() // it sends the same once more, by mistake
			if want := map[string]int{"std": 200, "std409": 409}[name]; d.status != want {
				t.Errorf("%s: a duplicate got %d, want %d", name, d.status, want)
			}
		}
	}
	if n := len(r.events(t)); n != 8 {
		t.Errorf("%d events", n)
	}
}

// dispatcher sends one message on a clock of its own: 2xx and 409 are
// success, anything else is tried again after min(1 s × 2^n, 1024 s), ten
// times at most.
type dispatcher struct {
	t         *testing.T
	room      *room
	path, id  string
	attempts  int
	status    int
	waited    time.Duration
	delivered bool
}

func (d *dispatcher) run(before func(attempt int)) {
	for retry := 0; ; retry++ {
		before(retry + 1)
		if d.attempt(); d.delivered || retry == 10 {
			return
		}
		d.waited += min(time.Second<<retry, 1024*time.Second)
	}
}

func (d *dispatcher) attempt() {
	body := []byte(`{"type":"payment.completed","data":{}}`)
	header := http.Header{}
	testkit.SignStandard(header, standardSecret, d.id, body, time.Now())
	d.attempts++
	d.status = d.room.do(d.t, "POST", d.path, header, body).status
	d.delivered = d.status >= 200 && d.status < 300 || d.status == 409
}

func TestGateR13OddBodiesAreKeptApart(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	bodies := []string{
		`{"type":"ping"}`, `{"type":"pong"}`, `{"id":null}`, `{"id":""}`, `{"id":{}}`,
		`not json`, "", "\x00\x01", `{"id":"cut`,
		`{"id":"deep-1","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		`{"id":"a","id":"b"}`,
		`{"id":"of an unknown type","type":"nobody.knows"}`,
	}
	for round := range 2 {
		for _, body := range bodies {
			wantStatus(t, r.sendGen(t, "gen", body), 200)
		}
		all := r.events(t)
		if len(all) != len(bodies) {
			t.Fatalf("round %d: %d events of %d bodies", round, len(all), len(bodies))
		}
		for _, e := range all {
			readable := e.Key.ID == "of an unknown type"
			if readable != (e.State == event.Pending) || !readable && (e.State != event.Dead || e.Error == "") {
				t.Errorf("%s is %s: %q", e.Key, e.State, e.Error)
			}
			if e.Duplicates != round {
				t.Errorf("%s has %d duplicates in round %d", e.Key, e.Duplicates, round)
			}
		}
	}
}
