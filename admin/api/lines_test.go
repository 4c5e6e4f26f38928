package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"creel/admin/api"
	"creel/admin/page"
	"creel/event"
)

// inPages has so many events, and no page longer than some. From a page on it
// fails, where fails is above 0.
func inPages(events, rows, fails int) func(context.Context, page.Ask) (page.Events, error) {
	return func(_ context.Context, ask page.Ask) (page.Events, error) {
		from := int64(events + 1)
		if ask.Cursor != "" {
			from, _ = strconv.ParseInt(ask.Cursor, 10, 64)
		}
		if fails > 0 && from <= int64(events+1-fails*rows) {
			return page.Events{}, errors.New("disk I/O error")
		}
		var found page.Events
		for seq := from - 1; seq > 0 && seq >= from-int64(rows); seq-- {
			found.List = append(found.List, event.Event{Seq: seq, Key: event.Key{Source: "shop", ID: fmt.Sprint("<", seq, ">")}, ReceivedAt: began})
			found.Next = seq
		}
		if found.Next <= 1 {
			found.Next = 0
		}
		return found, nil
	}
}

// Every event that is found is a line, whatever number of pages they make.
func TestEveryEventIsALine(t *testing.T) {
	t.Parallel()
	for _, events := range []int{0, 1, 7, 8, 500} {
		s := newStand(t)
		s.pages = inPages(events, 4, 0)
		res, text := s.do(t, "look", http.MethodGet, "/events.jsonl?q=type:x&source=shop", "")
		if h := res.Header; res.StatusCode != http.StatusOK || h.Get("Content-Type") != "application/jsonl" || h.Get("Content-Disposition") != "attachment; filename=events.jsonl" {
			t.Fatalf("%s %v", res.Status, h)
		}
		n := events
		for line := range strings.Lines(text) {
			var one struct {
				ID  string    `json:"id"`
				Key event.Key `json:"key"`
			}
			if err := json.Unmarshal([]byte(line), &one); err != nil || one.ID != fmt.Sprint("<", n, ">") {
				t.Fatalf("%d events: line %q, %v", events, line, err)
			}
			n--
		}
		if n != 0 {
			t.Errorf("%d of %d events are missing", n, events)
		}
		for _, ask := range s.asks {
			if ask.Type != "x" || ask.Source != "shop" || !ask.NoHead || ask.Limit != 200 {
				t.Errorf("it asks for %+v", ask)
			}
		}
	}
}

// A list that can not be read to its end is no whole one: it is refused, or
// breaks off in a way that no client takes for its end.
func TestAListThatFailsIsNotTakenForTheWhole(t *testing.T) {
	t.Parallel()
	get := func(s *stand, path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.web.URL+api.Prefix+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer look")
		return http.DefaultClient.Do(r)
	}
	s := newStand(t)
	for fails := 1; fails < 4; fails++ {
		s.pages = inPages(20, 4, fails)
		res, err := get(s, "/events.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil || strings.Count(string(text), "\n") > 4*fails {
			t.Errorf("page %d fails: %v after %d lines", fails, err, strings.Count(string(text), "\n"))
		}
	}
	s.pages = nil // each page leads to itself
	res, err := get(s, "/events.jsonl")
	if err == nil {
		_, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
	}
	if err == nil || len(s.asks) > 20 {
		t.Errorf("a list without an end: %v", err)
	}
	s.fails = errors.New("disk I/O error")
	for path, want := range map[string]int{"/events.jsonl": 500, "/dead-letters.jsonl": 500, "/events.jsonl?limit=5": 422, "/events.jsonl?cursor=5": 422,
		"/events.jsonl?q=tpye:x": 422, "/dead-letters.jsonl?state=done": 422} {
		if res, text := s.do(t, "look", http.MethodGet, path, ""); res.StatusCode != want || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s %s, want %d", path, res.Status, text, want)
		}
	}
}

// No more than two lists are written at once, and one whose reader is gone ends.
func TestListsThatAreWrittenAreBounded(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var ended [2]chan struct{}
	for i := range ended {
		ended[i] = make(chan struct{})
	}
	began := make(chan int, 2)
	n := 0
	s.pages = func(ctx context.Context, ask page.Ask) (page.Events, error) {
		if ask.Cursor == "" {
			return page.Events{List: []event.Event{{Seq: 9}}, Next: 9}, nil
		}
		s.mu.Lock()
		mine := n
		n++
		s.mu.Unlock()
		began <- mine
		<-ctx.Done()
		close(ended[mine])
		return page.Events{}, ctx.Err()
	}
	var leave []context.CancelFunc
	for range ended {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.web.URL+api.Prefix+"/events.jsonl", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer look")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "{") {
			t.Fatalf("the first page is not there before the second: %q, %v", line, err)
		}
		leave = append(leave, cancel)
		<-began
	}
	res, text := s.do(t, "look", http.MethodGet, "/events.jsonl", "")
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !strings.Contains(text, "at once") {
		t.Errorf("a third list: %s %s", res.Status, text)
	}
	for i := range leave {
		leave[i]()
		<-ended[i]
	}
}
