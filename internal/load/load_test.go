package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
)

func TestMakerSignsWhatItSends(t *testing.T) {
	t.Parallel()
	for name, ordered := range map[string]bool{"random": false, "ordered": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := newMaker("127.0.0.1:1", "/in/load", bodySize, ordered)
			if err != nil {
				t.Fatal(err)
			}
			seen, before := map[uint64]bool{}, ""
			for range 2000 {
				request := string(m.next())
				head, body, ok := strings.Cut(request, "\r\n\r\n")
				if !ok || len(body) != bodySize {
					t.Fatalf("a body of %d bytes", len(body))
				}
				header := map[string][]string{}
				testkit.SignPlain(header, secret, "", []byte(body), time.Time{})
				if !strings.Contains(head, "X-Signature: "+header["X-Signature"][0]) {
					t.Fatal("the signature is not that of the body")
				}
				if seen[m.key()] {
					t.Fatal("the same id twice")
				}
				seen[m.key()] = true
				if id := string(idOf([]byte(body))); ordered && id < before {
					t.Fatalf("%s after %s", id, before)
				} else {
					before = id[:len(idPrefix)+10]
				}
			}
		})
	}
}

func TestOpenLoopCountsFromTheIntendedTime(t *testing.T) {
	t.Parallel()
	d := testkit.NewDestination(t)
	gate := make(chan struct{})
	d.Script(testkit.Answer{Wait: gate}, testkit.Answer{})
	timer := time.AfterFunc(300*time.Millisecond, func() { close(gate) })
	defer timer.Stop()
	r, err := load{url: d.URL + "/in/load", connections: 1, rate: 100, duration: 400 * time.Millisecond, size: bodySize}.run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	// The first request stalls the connection for 300 ms: those behind it are
	// late, and their lateness must show.
	if r.Events != 40 || r.P50 < 50 {
		t.Fatalf("%d events, p50 %v ms: the wait of later sends is hidden", r.Events, r.P50)
	}
}

func TestClosedLoopCountsEveryAnswer(t *testing.T) {
	t.Parallel()
	d := testkit.NewDestination(t)
	d.Script(testkit.Answer{Status: 503}, testkit.Answer{Body: "ok"})
	r, err := load{url: d.URL + "/in/load", connections: 4, events: 100, size: bodySize}.run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if r.Statuses[200] != 99 || r.Statuses[503] != 1 || r.Events != 99 || d.Count() != 100 {
		t.Fatalf("%+v, the destination has %d", r, d.Count())
	}
}

func TestSinkTellsWhatArrives(t *testing.T) {
	t.Parallel()
	s, err := newSink("127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	a := newArrivals(s)
	r, err := load{url: s.url(), connections: 3, events: 500, size: bodySize, acknowledged: a.acknowledged}.run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.wait(context.Background(), 500, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if r.Events != 500 || len(a.delays()) != 500 || s.count.Load() != 500 {
		t.Fatalf("%d sent, %d matched, %d counted", r.Events, len(a.delays()), s.count.Load())
	}
}

func TestOrderOfCalls(t *testing.T) {
	t.Parallel()
	id := idPrefix + strings.Repeat("a", 26)
	const socket = "7<socket:[1]>"
	read := `10 read(` + socket + `, "POST /in/load HTTP/1.1\r\n{\"id\":\"` + id + `\"", 4096) = 1300`
	write := `11 pwrite64(5</x/creel.db-wal>, "\0` + id + `", 4096, 32) = 4096`
	sync := `11 fdatasync(5</x/creel.db-wal>) = 0`
	answer := `10 write(` + socket + `, "HTTP/1.1 200 OK\r\n", 120) = 120`
	for name, c := range map[string]struct {
		lines []string
		early int
	}{
		"in order":              {[]string{read, write, sync, answer}, 0},
		"not synced":            {[]string{read, write, answer, sync}, 1},
		"synced before written": {[]string{read, sync, write, answer}, 1},
		"sync has not returned": {[]string{read, write, `11 fdatasync(5</x/creel.db-wal> <unfinished ...>`, answer, `11 <... fdatasync resumed>) = 0`}, 1},
		"sync resumed":          {[]string{read, write, `11 fdatasync(5</x/creel.db-wal> <unfinished ...>`, `11 <... fdatasync resumed>) = 0`, answer}, 0},
		"written during a sync": {[]string{read, `12 fdatasync(5</x/creel.db-wal> <unfinished ...>`, write, `12 <... fdatasync resumed>) = 0`, answer}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrder()
			if err := o.read(strings.NewReader(strings.Join(c.lines, "\n"))); err != nil {
				t.Fatal(err)
			}
			if o.answers != 1 || o.early != c.early {
				t.Fatalf("%d answers, %d early", o.answers, o.early)
			}
		})
	}
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	all := newTally()
	for i := 1; i <= 1000; i++ {
		all.add(200, time.Duration(i)*time.Millisecond, time.Time{})
	}
	r := all.result(1, 0, 2*time.Second)
	if r.PerSecond != 500 || r.P50 != 501 || r.P99 != 991 || r.Max != 1000 {
		t.Fatalf("%+v", r)
	}
	if median([]float64{3, 1, 2}) != 2 || median([]float64{1, 2}) != 1.5 || median(nil) != 0 {
		t.Fatal("median")
	}
}

func TestMediansOfABenchmark(t *testing.T) {
	t.Parallel()
	got := medians([]byte("goos: linux\nBenchmarkPage/dead_letters-2         \t       9\t         1.208 p50-ms\nPASS\n"))
	if len(got) != 1 || got[0] != (timed{"dead letters", 1.208}) {
		t.Errorf("%+v", got)
	}
}
