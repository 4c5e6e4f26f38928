package receiver_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/store"
)

// TestGateR11Hostile: ten thousand hostile requests and many half-open
// connections write nothing to disk and hold little memory, and a good
// request passes meanwhile.
func TestGateR11Hostile(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{connections: 256, level: zerolog.InfoLevel})
	wantStatus(t, r.sendGen(t, "gen", `{"id":"before"}`), 200)
	database, wal := r.sizes(t)
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)

	for range 400 {
		_, _ = dial(t, r.addr).Write([]byte("POST /in/gen HTTP/1.1\r\nHost: x\r\nX-Slow:"))
	}
	requests := 10_000
	if testing.Short() {
		requests = 1_000
	}
	var next atomic.Int64
	var hostile sync.WaitGroup
	for range 8 {
		hostile.Go(func() {
			for n := next.Add(1); n <= int64(requests); n = next.Add(1) {
				r.attack(t, int(n))
			}
		})
	}
	var slowest time.Duration
	for range 20 {
		start := time.Now()
		wantStatus(t, r.sendGen(t, "gen", `{"id":"before"}`), 200)
		slowest = max(slowest, time.Since(start))
	}
	hostile.Wait()
	// The contract says a second; the rest is for a machine that does much else.
	if slowest > 3*time.Second {
		t.Errorf("a good request took %v", slowest)
	}
	grownDatabase, grownWAL := r.sizes(t)
	if grownDatabase != database || grownWAL > wal+20*64<<10 {
		t.Errorf("database %d → %d, WAL %d → %d", database, grownDatabase, wal, grownWAL)
	}
	if n := len(r.events(t)); n != 1 {
		t.Errorf("%d events are stored", n)
	}
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("%d bytes of heap are held", grown)
	}
	if n := r.log.count("request rejected"); n > 100 {
		t.Errorf("%d log lines", n)
	}
	if counts := r.Counts(); len(counts) > 4 {
		t.Errorf("%d series of sources", len(counts))
	}
}

// attack sends the n-th hostile request, over HTTP so that ten thousand fit
// into a test.
func (r *room) attack(t *testing.T, n int) {
	big := strings.Repeat("a", 10<<10)
	kinds := []struct {
		method, path string
		header       http.Header
		body         string
		status       int
	}{
		{"POST", "/in/gen", nil, `{"id":"x"}`, 401},
		{"POST", "/in/gen", http.Header{"X-Signature-256": {"sha256=" + strings.Repeat("0", 64)}}, `{"id":"x"}`, 401},
		{"POST", "/in/gen", http.Header{"X-Signature-256": {big}}, big, 401},
		{"POST", "/in/gh", http.Header{"X-Hub-Signature-256": {"sha1=00"}, "X-Github-Delivery": {fmt.Sprint(n)}}, "{}", 401},
		{"POST", fmt.Sprintf("/in/%d", n), nil, "{}", 404},
		{"BREW", "/in/gen", nil, "", 405},
		{"POST", "/in/gen", http.Header{"Content-Encoding": {"gzip, br"}}, big, 415},
		{"GET", "/in/gen?" + big[:100], nil, "", 200},
		{"POST", "/in/gen", http.Header{"X-Signature-256": {"sha256=", "sha256="}, "X-Forwarded-For": {"1.2.3.4"}}, "\x00", 401},
		{"POST", "/in/std", http.Header{"Webhook-Id": {fmt.Sprint(n)}, "Webhook-Timestamp": {"99999999999999999999"}, "Webhook-Signature": {"v1,"}}, "{}", 401},
	}
	k := kinds[n%len(kinds)]
	if got := r.do(t, k.method, k.path, k.header, []byte(k.body)); got.status != k.status {
		t.Errorf("%s %s: %d, want %d", k.method, k.path, got.status, k.status)
	}
}
