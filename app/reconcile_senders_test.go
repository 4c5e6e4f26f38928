package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"creel/admin"
	"creel/event"
)

// shelf is what a sender keeps: events from old to new, some of which come while
// the list is read. It wants to be left alone now and then.
type shelf struct {
	mu       sync.Mutex
	now      func() time.Time
	events   []kept
	reach    time.Duration
	asked    int
	limited  int
	tooSoon  int
	notUntil time.Time
	grow     func(n int) []kept // what comes with the n-th request
	again    []string           // ids that were asked for again
}

// span lists what the sender keeps of a stretch of time, from old to new, both
// ends included; the zero time is no end.
func (s *shelf) span(from, until time.Time) (list []kept) {
	for _, one := range s.events {
		late := !until.IsZero() && one.at.After(until)
		if !one.at.Before(from) && !late && (s.reach == 0 || one.at.After(s.now().Add(-s.reach))) {
			list = append(list, one)
		}
	}
	return list
}

// open lets a request in, or answers it.
func (s *shelf) open(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Authorization") != "Bearer rk_test_0123456789" {
		w.WriteHeader(http.StatusUnauthorized)
		return false
	}
	now := s.now()
	if now.Before(s.notUntil) {
		s.tooSoon++
	}
	if s.asked++; s.asked%4 == 2 {
		s.limited++
		s.notUntil = now.Add(7 * time.Second)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		return false
	}
	if s.grow != nil {
		s.events = append(s.events, s.grow(s.asked)...)
	}
	return true
}

// dialect is how one sender lists its events, and how its webhook carries one.
type dialect struct {
	provider string
	config   string // of the source; %s is the address
	reach    time.Duration
	answer   func(t *testing.T, s *shelf, w http.ResponseWriter, r *http.Request)
	webhook  func(one kept) (body string, header map[string]string)
	again    bool
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func pageSize(t *testing.T, text string, most int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		t.Errorf("a page of %q, of at most %d", text, most)
		return most
	}
	return n
}

func timeOf(t *testing.T, text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Errorf("the time %q: %v", text, err)
	}
	return at
}

// behind cuts off what stands before the event that a cursor names, which comes
// first in what is left where it is included.
func behind(list []kept, cursor string) []kept {
	if at := slices.IndexFunc(list, func(one kept) bool { return one.id == cursor }); cursor != "" {
		return list[at+1:]
	}
	return list
}

func firstPage(list []kept, size int) (first []kept, more bool) {
	return list[:min(size, len(list))], len(list) > size
}

func newestFirst(list []kept) []kept {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func rfc(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

func paddle() dialect {
	body := func(one kept, notification string) string {
		return fmt.Sprintf(`{"event_id":%q,"event_type":%q,"occurred_at":%q,"notification_id":%q,"data":{"id":"txn_%s"}}`, one.id, one.kind, rfc(one.at), notification, one.id)
	}
	return dialect{provider: "paddle", reach: 90 * 24 * time.Hour, again: true, config: `
  [source.reconcile]
  url       = "%[1]s/notifications"
  redeliver = "%[1]s/notifications/{body.id}/replay"`,
		webhook: func(one kept) (string, map[string]string) { return body(one, "ntf_another"), nil },
		answer: func(t *testing.T, s *shelf, w http.ResponseWriter, r *http.Request) {
			if id, ok := strings.CutPrefix(r.URL.Path, "/notifications/"); ok {
				s.again = append(s.again, strings.TrimPrefix(strings.TrimSuffix(id, "/replay"), "ntf_"))
				w.WriteHeader(http.StatusAccepted)
				return
			}
			query := r.URL.Query()
			list := newestFirst(s.span(timeOf(t, query.Get("from")), timeOf(t, query.Get("to"))))
			list, more := firstPage(behind(list, strings.TrimPrefix(query.Get("after"), "ntf_")), pageSize(t, query.Get("per_page"), 200))
			items := []any{}
			for _, one := range list {
				items = append(items, map[string]any{"id": "ntf_" + one.id, "type": one.kind, "status": "delivered", "origin": "event",
					"occurred_at": rfc(one.at), "payload": raw(body(one, "ntf_"+one.id))})
			}
			if len(list) > 0 {
				query.Set("after", "ntf_"+list[len(list)-1].id)
			}
			writeJSON(w, map[string]any{"data": items, "meta": map[string]any{"pagination": map[string]any{
				"per_page": 200, "estimated_total": len(list), "has_more": more, "next": "http://" + r.Host + r.URL.Path + "?" + query.Encode()}}})
		}}
}

// polar lists tries, by pages that move while new ones come: each event has two.
func polar() dialect {
	body := func(one kept) string {
		return fmt.Sprintf(`{"type":%q,"timestamp":%q,"data":{"id":"ord_%s"}}`, one.kind, rfc(one.at), one.id)
	}
	return dialect{provider: "polar", reach: 90 * 24 * time.Hour, again: true, config: `
  [source.reconcile]
  url       = "%[1]s/v1/webhooks/deliveries"
  redeliver = "%[1]s/v1/webhooks/events/{body.webhook_event.id}/redeliver"`,
		webhook: func(one kept) (string, map[string]string) { return body(one), map[string]string{"webhook-id": one.id} },
		answer: func(t *testing.T, s *shelf, w http.ResponseWriter, r *http.Request) {
			if id, ok := strings.CutPrefix(r.URL.Path, "/v1/webhooks/events/"); ok {
				s.again = append(s.again, strings.TrimSuffix(id, "/redeliver"))
				w.WriteHeader(http.StatusAccepted)
				return
			}
			query := r.URL.Query()
			from, until := timeOf(t, query.Get("start_timestamp")), timeOf(t, query.Get("end_timestamp"))
			items := []any{}
			for _, one := range newestFirst(s.span(from.Add(1), until.Add(-1))) { // the ends are not included
				for try := range 2 {
					items = append(items, map[string]any{"id": fmt.Sprintf("try_%s_%d", one.id, try), "created_at": rfc(one.at), "succeeded": false,
						"webhook_event": map[string]any{"id": one.id, "type": one.kind, "payload": body(one), "created_at": rfc(one.at), "is_archived": false}})
				}
			}
			number, size := max(1, pageSize(t, orOne(query.Get("page")), 1000)), pageSize(t, query.Get("limit"), 100)
			pages, total := slices.Collect(slices.Chunk(items, size)), len(items)
			items = []any{}
			if number <= len(pages) {
				items = pages[number-1]
			}
			writeJSON(w, map[string]any{"items": items, "pagination": map[string]any{"total_count": total, "max_page": len(pages)}})
		}}
}

func orOne(text string) string {
	if text == "" {
		return "1"
	}
	return text
}

// workos lists from old to new whatever it is asked, and writes times as its
// documentation does.
func workos() dialect {
	body := func(one kept, more string) string {
		return fmt.Sprintf(`{"id":%q,"event":%q,"created_at":%q,"data":{"id":"user_%s"}%s}`, one.id, one.kind, one.at.UTC().Format("2006-01-02 15:04:05.000"), one.id, more)
	}
	return dialect{provider: "workos", reach: 30 * 24 * time.Hour, config: `
  [source.reconcile]
  url = "%[1]s/events"`,
		webhook: func(one kept) (string, map[string]string) { return body(one, ""), nil },
		answer: func(t *testing.T, s *shelf, w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			list := s.span(timeOf(t, query.Get("range_start")), timeOf(t, query.Get("range_end")))
			list, _ = firstPage(behind(list, query.Get("after")), pageSize(t, query.Get("limit"), 100))
			items, after := []any{}, any(nil)
			for _, one := range list {
				items, after = append(items, raw(body(one, `,"object":"event","context":{}`))), one.id
			}
			writeJSON(w, map[string]any{"object": "list", "data": items, "list_metadata": map[string]any{"after": after}})
		}}
}

// square is asked by POST, and has no list at all where it is empty.
func square() dialect {
	body := func(one kept) string {
		return fmt.Sprintf(`{"merchant_id":"M1","type":%q,"event_id":%q,"created_at":%q,"data":{"type":"payment","id":"pay_%s"}}`, one.kind, one.id, rfc(one.at), one.id)
	}
	return dialect{provider: "square", reach: 28 * 24 * time.Hour, config: `
  public_url = "https://hooks.example.test/in/sender"
  [source.reconcile]
  url = "%[1]s/v2/events"`,
		webhook: func(one kept) (string, map[string]string) { return body(one), nil },
		answer: func(t *testing.T, s *shelf, w http.ResponseWriter, r *http.Request) {
			var ask struct {
				Limit  int    `json:"limit"`
				Cursor string `json:"cursor"`
				Query  struct {
					Filter struct {
						CreatedAt struct {
							Start time.Time `json:"start_at"`
							End   time.Time `json:"end_at"`
						} `json:"created_at"`
					} `json:"filter"`
					Sort struct{ Field, Order string } `json:"sort"`
				} `json:"query"`
			}
			decoder := json.NewDecoder(r.Body)
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&ask); err != nil || r.Method != http.MethodPost || r.URL.RawQuery != "" || ask.Query.Sort.Order != "ASC" {
				t.Errorf("%s %s: %+v, %v", r.Method, r.URL, ask, err)
			}
			list := s.span(ask.Query.Filter.CreatedAt.Start, ask.Query.Filter.CreatedAt.End)
			list, more := firstPage(behind(list, ask.Cursor), pageSize(t, strconv.Itoa(ask.Limit), 100))
			answer := map[string]any{}
			for _, one := range list {
				items, _ := answer["events"].([]any)
				answer["events"] = append(items, raw(body(one)))
				if more {
					answer["cursor"] = one.id
				}
			}
			writeJSON(w, answer)
		}}
}

// gocardless has one event of many in each webhook, and its list has less of it.
func gocardless() dialect {
	body := func(one kept, more string) string {
		kind, action, _ := strings.Cut(one.kind, ".")
		return fmt.Sprintf(`{"id":%q,"created_at":%q,"resource_type":%q,"action":%q,"links":{"payment":"PM%s"%s}}`, one.id, rfc(one.at), kind, action, one.id, more)
	}
	return dialect{provider: "gocardless", config: `
  [source.reconcile]
  url = "%[1]s/events"`,
		webhook: func(one kept) (string, map[string]string) {
			return `{"events":[` + body(one, `,"organisation":"OR1"`) + `],"meta":{"webhook_id":"WB1"}}`, nil
		},
		answer: func(t *testing.T, s *shelf, w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			if r.Header.Get("GoCardless-Version") != "2015-07-06" {
				t.Error("no GoCardless-Version")
			}
			list := newestFirst(s.span(timeOf(t, query.Get("created_at[gte]")), timeOf(t, query.Get("created_at[lte]"))))
			list, more := firstPage(behind(list, query.Get("after")), pageSize(t, query.Get("limit"), 500))
			items, after := []any{}, any(nil)
			for _, one := range list {
				if items = append(items, raw(body(one, ""))); more {
					after = one.id
				}
			}
			writeJSON(w, map[string]any{"events": items, "meta": map[string]any{"cursors": map[string]any{"before": nil, "after": after}, "limit": len(list)}})
		}}
}

// resend lists one webhook's events without what they carried, as far back as it
// goes.
func resend() dialect {
	body := func(one kept) string {
		return fmt.Sprintf(`{"type":%q,"created_at":%q,"data":{"email_id":"em_%s"}}`, one.kind, rfc(one.at), one.id)
	}
	return dialect{provider: "resend", again: true, config: `
  settings = { webhook = "4dd369bc" }
  [source.reconcile]
  url       = "%[1]s/webhooks/{setting.webhook}/events"
  detail    = "%[1]s/webhooks/{setting.webhook}/events/{body.id}"
  redeliver = "%[1]s/webhooks/{setting.webhook}/events/{body.id}/replay"`,
		webhook: func(one kept) (string, map[string]string) { return body(one), map[string]string{"svix-id": one.id} },
		answer: func(t *testing.T, s *shelf, w http.ResponseWriter, r *http.Request) {
			rest, ok := strings.CutPrefix(r.URL.Path, "/webhooks/4dd369bc/events")
			id, replay := strings.CutSuffix(strings.TrimPrefix(rest, "/"), "/replay")
			query, list := r.URL.Query(), newestFirst(s.span(time.Time{}, time.Time{}))
			at := slices.IndexFunc(list, func(one kept) bool { return one.id == id })
			switch {
			case !ok || id != "" && at < 0:
				w.WriteHeader(http.StatusNotFound)
			case replay:
				s.again = append(s.again, id)
				writeJSON(w, map[string]any{"object": "webhook_event", "id": id})
			case id != "":
				writeJSON(w, map[string]any{"object": "webhook_event", "id": id, "type": list[at].kind, "created_at": rfc(list[at].at),
					"status": "failed", "next_attempt_at": nil, "payload": raw(body(list[at]))})
			default:
				list, more := firstPage(behind(list, query.Get("after")), pageSize(t, query.Get("limit"), 100))
				items := []any{}
				for _, one := range list {
					items = append(items, map[string]any{"id": one.id, "type": one.kind, "created_at": rfc(one.at), "status": "failed"})
				}
				writeJSON(w, map[string]any{"object": "list", "has_more": more, "data": items})
			}
		}}
}

const senderConfig = `
listen   = "127.0.0.1:0"
database = %q
[[source]]
name     = "sender"
provider = %q
secrets  = ["whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="]
forward  = "app"
%s
  token = "env:READ_KEY"
  types = ["payments.*"]
[destination.app]
url    = "http://127.0.0.1:9"
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
`

// newSenderStage is an app with one source whose sender keeps a shelf.
func newSenderStage(t *testing.T, d dialect) (*stage, *shelf) {
	t.Helper()
	s := &stage{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	k := &shelf{now: s.now, reach: d.reach}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.open(w, r) {
			d.answer(t, k, w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.begin(t, fmt.Sprintf(senderConfig, filepath.Join(t.TempDir(), "creel.db"), d.provider, fmt.Sprintf(d.config, server.URL)))
	return s, k
}

func headerOf(lines map[string]string) http.Header {
	header := http.Header{}
	for name, value := range lines {
		header.Set(name, value)
	}
	return header
}

// deliver brings events in as their webhooks do, and wants each to come to that.
func (s *stage) deliver(t *testing.T, d dialect, want event.Result, events ...kept) {
	t.Helper()
	ask := admin.AskImport{Source: "sender", Actor: "test", File: "-"}
	for i, one := range events {
		body, header := d.webhook(one)
		ask.Lines = append(ask.Lines, admin.ImportLine{N: i + 1, Body: []byte(body), Header: headerOf(header)})
	}
	done, err := s.Import(context.Background(), ask)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range done {
		if line.Error != "" || len(line.Events) != 1 || line.Events[0].Result != want {
			t.Fatalf("%s: %+v, want a %s", events[i].id, line, want)
		}
	}
}
