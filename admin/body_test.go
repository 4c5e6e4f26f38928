package admin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"creel/event"
)

// shelf is a server of bodies over events that a test puts there.
type shelf struct {
	*httptest.Server
	bodies *Bodies
	mu     sync.Mutex
	now    time.Time
	events map[int64]event.Work
	err    error
	reads  int
}

var bodyStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type noOperations struct{ Operations }

func (noOperations) Checks() []Check { return nil }

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{now: bodyStart, events: map[int64]event.Work{}}
	s.bodies = NewBodies(bytes.Repeat([]byte{7}, 32), s.read, func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.now
	})
	s.Server = httptest.NewServer(Operator(noOperations{}, s.bodies, http.NotFoundHandler()))
	t.Cleanup(s.Close)
	return s
}

func (s *shelf) read(_ context.Context, seq int64) (event.Work, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	work, ok := s.events[seq]
	if !ok && s.err == nil {
		return work, event.ErrNotFound
	}
	return work, s.err
}

func (s *shelf) put(seq int64, id string, payload event.Payload) event.Key {
	key := event.Key{Source: "shop", ID: id}
	s.events[seq] = event.Work{Event: event.Event{Seq: seq, Key: key}, Payload: payload}
	return key
}

func (s *shelf) get(t *testing.T, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// TestGateD9Bodies asks for a body at its address in every way there is.
func TestGateD9Bodies(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const page = "<script>alert(1)</script>\r\n\xff"
	key := s.put(5, "evt_1", event.Payload{Body: []byte(page), Header: "Content-Type: text/html\nSet-Cookie: a=b\n"})
	list := s.put(6, "evt_2", event.Payload{Body: []byte(`{"items":[ {"n": 1.0} ,2]}`), Part: "body.items.0"})
	until := bodyStart.Add(time.Hour)
	path := s.bodies.Path(5, key, until)

	res, body := s.get(t, http.MethodGet, path)
	if res.StatusCode != 200 || body != page {
		t.Fatalf("%s %q", res.Status, body)
	}
	for name, want := range map[string]string{"Content-Type": "text/html", "Content-Disposition": "attachment", "Set-Cookie": "",
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'", "Cache-Control": "no-store"} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	tag := res.Header.Get("ETag")
	if res, body := s.get(t, http.MethodGet, path, "Range", "bytes=1-6", "If-Range", tag); res.StatusCode != 206 || body != "script" {
		t.Errorf("a range: %s %q", res.Status, body)
	}
	if res, body := s.get(t, http.MethodGet, path, "Range", "bytes=900-"); res.StatusCode != 416 {
		t.Errorf("a range behind the end: %s %q", res.Status, body)
	}
	if res, body := s.get(t, http.MethodHead, path); res.StatusCode != 200 || res.ContentLength != int64(len(page)) || body != "" {
		t.Errorf("HEAD: %s %d", res.Status, res.ContentLength)
	}
	if res, _ := s.get(t, http.MethodPost, path); res.StatusCode != 405 || res.Header.Get("Allow") == "" {
		t.Errorf("POST: %s", res.Status)
	}
	if res, body := s.get(t, http.MethodGet, s.bodies.Path(6, list, until)); res.StatusCode != 200 || body != `{"n": 1.0}` ||
		res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("one of several: %s %q", res.Status, body)
	}
}

// What was tampered with, is over or unknown is one and the same answer, and
// costs no look at the file before its signature is known.
func TestGateD9BodiesRefused(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	key := s.put(5, "evt_1", event.Payload{Body: []byte("body")})
	other := event.Key{Source: "shop", ID: "evt_2"}
	until := bodyStart.Add(time.Hour)
	path := s.bodies.Path(5, key, until)
	foreign := NewBodies(bytes.Repeat([]byte{8}, 32), s.read, time.Now)
	swapped := s.bodies.Path(6, other, until)[:20] + path[20:]
	for name, path := range map[string]string{
		"another key of the server":  foreign.Path(5, key, until),
		"a flipped bit":              path[:30] + string(path[30]^1) + path[31:],
		"cut off":                    path[:len(path)-1],
		"with more behind it":        path + "A",
		"with padding":               path + "=",
		"with a line end":            path[:20] + "%0A" + path[20:],
		"bits behind the last":       path[:len(path)-1] + string(path[len(path)-1]+1),
		"two halves":                 swapped,
		"nothing":                    "/body/",
		"something":                  "/body/../readyz",
		"with a step behind it":      path + "/",
		"an event that is not there": "",
		"another event's number":     "",
	} {
		read := 0
		switch name {
		case "an event that is not there":
			path, read = s.bodies.Path(9, key, until), 1
		case "another event's number":
			path, read = s.bodies.Path(5, other, until), 1
		}
		s.reads = 0
		res, body := s.get(t, http.MethodGet, path)
		if res.StatusCode != 404 || !strings.EqualFold(strings.TrimSpace(strings.ReplaceAll(body, "404 page ", "")), "not found") {
			t.Errorf("%s: %s %q", name, res.Status, body)
		}
		if s.reads != read {
			t.Errorf("%s: the file was read %d times", name, s.reads)
		}
	}
	for _, step := range []struct {
		at     time.Time
		status int
	}{{until.Add(-time.Millisecond), 200}, {until, 404}, {until.Add(time.Hour), 404}} {
		s.mu.Lock()
		s.now = step.at
		s.mu.Unlock()
		if res, _ := s.get(t, http.MethodGet, path); res.StatusCode != step.status {
			t.Errorf("at %s: %s", step.at, res.Status)
		}
	}
}

// A body that is not kept any more is 410, also where it was an element; a
// store that can not be read is 503 and tells nothing.
func TestBodiesThatAreGone(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	until := bodyStart.Add(time.Hour)
	for seq, payload := range map[int64]event.Payload{1: {}, 2: {Part: "body.items.0"}} {
		if res, body := s.get(t, http.MethodGet, s.bodies.Path(seq, s.put(seq, "evt", payload), until)); res.StatusCode != 410 || body != bodyGone {
			t.Errorf("%+v: %s %q", payload, res.Status, body)
		}
	}
	s.err = errors.New("disk I/O error of creel.db")
	if res, body := s.get(t, http.MethodGet, s.bodies.Path(1, event.Key{Source: "shop", ID: "evt"}, until)); res.StatusCode != 503 ||
		res.Header.Get("Retry-After") == "" || strings.Contains(body, "creel.db") {
		t.Errorf("%s %q", res.Status, body)
	}
}
