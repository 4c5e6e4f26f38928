package source

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// hub lists deliveries as GitHub does: two pages joined by a Link header, the
// whole of a delivery at an address of its own, and a call that delivers again.
func hub(t *testing.T, again *[]string) *httptest.Server {
	t.Helper()
	const base = "/repos/octocat/web/hooks/7/deliveries"
	item := func(id int, guid, kind string) string {
		return fmt.Sprintf(`{"id":%d,"guid":%q,"delivered_at":"2026-11-19T10:00:00.5Z","redelivery":false,"event":%q,"action":null}`, id, guid, kind)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+base, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?per_page=100&cursor=v1_2>; rel="next", <http://%s/>; rel="first"`, r.Host, base, r.Host))
			fmt.Fprintf(w, "[%s,%s]", item(3, "g-3", "push"), item(2, "g-2", "ping"))
			return
		}
		fmt.Fprintf(w, "[%s,%s]", item(2, "g-2", "ping"), item(1, "g-1", "push"))
	})
	mux.HandleFunc("GET "+base+"/1", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"id":1,"guid":"g-1","request":{"headers":{},"payload":{"ref":"refs/heads/main","repository":{"owner":{"login":"octocat"}}}}}`)
	})
	mux.HandleFunc("POST "+base+"/{id}/attempts", func(w http.ResponseWriter, r *http.Request) {
		*again = append(*again, r.PathValue("id"))
		w.WriteHeader(http.StatusAccepted)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// The preset of GitHub finds deliveries, makes of one what its webhook was, and
// asks for another.
func TestListOfGitHub(t *testing.T) {
	t.Parallel()
	var again []string
	server := hub(t, &again)
	at := server.URL + "/{setting.hook}/deliveries"
	s := mustCompile(t, config.Source{Name: "github", Provider: "github", Secrets: []config.Secret{config.NewSecret("0123456789abcdef0123")},
		Settings: map[string]string{"hook": "repos/octocat/web/hooks/7"},
		Reconcile: &config.Reconcile{URL: config.StringList{at}, Detail: at + "/{body.id}", Again: at + "/{body.id}/attempts",
			Token: config.NewSecret("ghp_0123456789")}})
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	pace := NewPace(func() time.Time { return now }, func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil })
	l := s.Lister()
	var all []Listed
	listing, err := l.List(context.Background(), pace, Span{From: now.Add(-48 * time.Hour), Until: now}, func(page []Listed) error {
		all = append(all, page...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if listing.Pages != 2 || listing.Listed != 3 || len(all) != 3 || all[0].Key.ID != "g-3" || all[0].Type != "push" || all[2].Key.ID != "g-1" || all[0].Exact {
		t.Fatalf("%+v: %+v", listing, all)
	}
	request, err := l.Fetch(context.Background(), pace, &all[2])
	if err != nil {
		t.Fatal(err)
	}
	brought, err := s.Bring(request)
	if err != nil {
		t.Fatal(err)
	}
	if want := (event.Key{Source: "github", Account: "octocat", ID: "g-1"}); brought.Items[0].Key != want || brought.Items[0].Type != "push" {
		t.Errorf("%+v", brought.Items[0])
	}
	if err := l.Redeliver(context.Background(), pace, &all[0]); err != nil || len(again) != 1 || again[0] != "3" {
		t.Errorf("%v: asked for %v", err, again)
	}
}

// A next page at another address does not get the token.
func TestListStaysAtItsAddress(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other address was asked") }))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data":[],"next":%q}`, elsewhere.URL+"/more")
	}))
	t.Cleanup(server.Close)
	s := mustCompile(t, config.Source{Name: "shop", Verify: &config.Scheme{Auth: "none", ID: config.StringList{"body.id"}},
		Reconcile: &config.Reconcile{URL: config.StringList{server.URL + "/events"}, Items: "body.data", Next: "body", NextAt: "body.next", Token: config.NewSecret("tok_0123456789")}})
	pace := NewPace(time.Now, nil)
	_, err := s.Lister().List(context.Background(), pace, Span{From: time.Now().Add(-time.Hour), Until: time.Now()}, func([]Listed) error { return nil })
	if err == nil {
		t.Error("it went on")
	}
}

// One element of a batch is taken alone too.
func TestBringOneOfABatch(t *testing.T) {
	t.Parallel()
	for split, want := range map[string]string{"body.events": `{"events":{"id":"evt_1"}}`, "body.entry.*.changes.*": `{"entry":[{"changes":[{"id":"evt_1"}]}]}`} {
		if got, ok := enclose(split, []byte(`{"id":"evt_1"}`)); !ok || string(got) != want {
			t.Errorf("%s: %s", split, got)
		}
	}
}
