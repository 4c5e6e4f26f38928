package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// keptList is a sender that keeps a list of its events and delivers again what it
// is asked for.
type keptList struct {
	mu    sync.Mutex
	items []string
	again []string
}

func newKeptList(t *testing.T) (*keptList, string) {
	t.Helper()
	l := &keptList{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+appSecret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(l.items, ","))
	})
	mux.HandleFunc("POST /events/{id}/again", func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.again = append(l.again, r.PathValue("id"))
		w.WriteHeader(http.StatusAccepted)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return l, server.URL
}

func (l *keptList) add(id, kind string, at time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	body := fmt.Sprintf(`{"id":%q,"type":%q,"at":%q}`, id, kind, at.UTC().Format(time.RFC3339))
	l.items = append([]string{body}, l.items...)
	return body
}

// TestGateO4Command finds what the sender lists and the inbox does not have,
// tells of it, has it delivered again and brings it in, with a server running
// and without one.
func TestGateO4Command(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	sender, url := newKeptList(t)
	s.configure(t, strings.Replace(plain(s.app.URL, ""), "[destination.app]", fmt.Sprintf(`
  [source.reconcile]
  url       = "%[1]s/events"
  token     = "env:APP_SECRET"
  items     = "body.data"
  at        = "body.at"
  unit      = "rfc3339"
  types     = ["order.*"]
  redeliver = "%[1]s/events/{body.id}/again"
  reach     = "720h"
[destination.app]`, url), 1))
	s.Start(t)
	hours := func(n int) time.Time { return time.Now().Add(-time.Duration(n) * time.Hour) }
	sender.add("evt_far", "order.paid", hours(300))
	s.send(t, sender.add("evt_here", "order.paid", hours(3)))
	sender.add("evt_lost", "order.paid", hours(2))
	sender.add("evt_other", "invoice.paid", hours(2))
	sender.add("evt_young", "order.paid", time.Now())

	told := command(t, s.Process, 1, "reconcile", "shop", "--since", "24h")
	if !strings.Contains(told, "2 events listed, 1 missing; --import brings them in") || !strings.Contains(told, "evt_lost") || strings.Contains(told, "evt_other") {
		t.Errorf("%s", told)
	}
	if stats := command(t, s.Process, 0, "stats"); !strings.Contains(stats, "reconciliation_gap") {
		t.Errorf("%s", stats)
	}
	told = command(t, s.Process, 0, "reconcile", "shop", "--since", "24h", "--redeliver")
	if !strings.Contains(told, "1 asked for again") || len(sender.again) != 1 || sender.again[0] != "evt_lost" {
		t.Errorf("%v: %s", sender.again, told)
	}
	told = command(t, s.Process, 0, "reconcile", "shop", "--since", "24h", "--import", "--reason", "outage")
	if !strings.Contains(told, "1 missing, 1 recovered") {
		t.Errorf("%s", told)
	}
	await(t, s.Process, 2, "deliveries", "--state", "sent", "--json")
	if audit := command(t, s.Process, 0, "audit"); !strings.Contains(audit, "1 missing, 1 recovered") || !strings.Contains(audit, "outage") {
		t.Errorf("%s", audit)
	}
	if exit := s.Terminate(); exit.Code != 0 {
		t.Fatalf("%+v", exit)
	}

	// Without a server, and further back than the list goes.
	var done struct {
		Listed, Missing, Recovered int
		Unrecoverable              []struct{ From, Until time.Time }
	}
	if err := json.Unmarshal([]byte(command(t, s.Process, 0, "reconcile", "shop", "--since", "1440h", "--import", "--json")), &done); err != nil {
		t.Fatal(err)
	}
	if done.Missing != 1 || done.Recovered != 1 || len(done.Unrecoverable) != 1 || done.Unrecoverable[0].Until.Sub(done.Unrecoverable[0].From).Round(time.Hour) != 720*time.Hour {
		t.Errorf("%+v", done)
	}
	// What can not be read may be missing too.
	sender.items = append(sender.items, `{"name":"no id"}`)
	if told := command(t, s.Process, 3, "reconcile", "shop", "--since", "24h"); !strings.Contains(told, "1 item of the list could not be read") {
		t.Errorf("%s", told)
	}
	// A list that can not be read is no list without a gap.
	s.Setenv("APP_SECRET", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	if _, _, text := s.Run(t, "reconcile", "shop", "--since", "24h"); !strings.Contains(string(text), "HTTP 401") || !strings.Contains(string(text), "\nTry: make a token") {
		t.Errorf("%s", text)
	}
	s.Start(t)
	if _, _, text := s.Run(t, "reconcile", "shop", "--since", "24h"); !strings.Contains(string(text), "HTTP 401") || !strings.Contains(string(text), "\nTry: make a token") {
		t.Errorf("by the server: %s", text)
	}
}
