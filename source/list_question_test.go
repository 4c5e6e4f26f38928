package source

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"creel/config"
)

// listOf makes a lister of an answering sender.
func listOf(t *testing.T, in config.Reconcile, answer http.HandlerFunc) *Lister {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	in.URL = config.StringList{server.URL + "/events"}
	return mustCompile(t, config.Source{Name: "shop", Verify: &config.Scheme{Auth: "none", ID: config.StringList{"body.id"}}, Reconcile: &in}).Lister()
}

// read reads a list, and returns the ids in it.
func (l *Lister) read(t *testing.T, span Span) (ids []string, listing Listing, err error) {
	t.Helper()
	now := span.Until
	pace := NewPace(func() time.Time { return now }, func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil })
	listing, err = l.List(context.Background(), pace, span, func(page []Listed) error {
		for _, one := range page {
			ids = append(ids, one.Key.ID)
		}
		return nil
	})
	return ids, listing, err
}

func lastDay() Span {
	until := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return Span{From: until.Add(-24 * time.Hour), Until: until}
}

// Times are read as senders write them.
func TestListReadsTimes(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 8, 22, 15, 28, 0, 500_000_000, time.UTC)
	l := &Lister{unit: "rfc3339"}
	for _, text := range []string{"2026-08-22T15:28:00.500Z", "2026-08-22T15:28:00.5Z", "2026-08-22 15:28:00.500", "2026-08-22 15:28:00.500000+00",
		"2026-08-22T17:28:00.5+02:00", "2026-08-22T17:28:00.5+0200", "2026-08-22 17:28:00.5+02"} {
		if at := l.moment(text); !at.Equal(want) {
			t.Errorf("%s: %v", text, at)
		}
	}
	for text, want := range map[string]int64{"1767225600": 1767225600, "": 0, "yesterday": 0, "22.08.2026": 0} {
		if at := l.moment(text); at.IsZero() != (want == 0) || want != 0 && at.Unix() != want {
			t.Errorf("%q: %v", text, at)
		}
	}
}

// A list that goes from old to new, though it is said to begin with the newest,
// is read to its end: what is looked for is behind its old pages.
func TestListThatRises(t *testing.T) {
	t.Parallel()
	span := lastDay()
	l := listOf(t, config.Reconcile{Items: "body.data", At: "body.at", Unit: "rfc3339", Next: "page", Cursor: "page", Size: "limit", PageSize: 2, Order: "newest"},
		func(w http.ResponseWriter, r *http.Request) {
			var page []string
			for i := range 2 {
				n := map[string]int{"": 0, "2": 2, "3": 4}[r.URL.Query().Get("page")] + i
				if at := span.From.Add(time.Duration(n-4) * time.Hour); n < 6 && r.URL.Query().Get("page") != "4" {
					page = append(page, fmt.Sprintf(`{"id":"e%d","at":%q}`, n, at.Format(time.RFC3339)))
				}
			}
			fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(page, ","))
		})
	ids, _, err := l.read(t, span)
	if want := []string{"e4", "e5"}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("%v: %v, want %v", err, ids, want)
	}
}

// A list that begins with the newest is not read further than it is asked for.
func TestListEndsWithTheSpan(t *testing.T) {
	t.Parallel()
	span := lastDay()
	asked := 0
	l := listOf(t, config.Reconcile{Items: "body.data", At: "body.at", Unit: "rfc3339", Next: "page", Cursor: "page", Size: "limit", PageSize: 2, Order: "newest"},
		func(w http.ResponseWriter, r *http.Request) {
			at := span.Until.Add(-time.Duration(asked) * 20 * time.Hour)
			asked++
			fmt.Fprintf(w, `{"data":[{"id":"a%[1]d","at":%[2]q},{"id":"b%[1]d","at":%[2]q}]}`, asked, at.Add(-time.Hour).Format(time.RFC3339))
		})
	if ids, _, err := l.read(t, span); err != nil || len(ids) != 4 || asked != 3 {
		t.Errorf("%v: %v after %d pages", err, ids, asked)
	}
}

// An answer that says 200 and that it failed is no empty list; one without a list
// is one only where that is said of the sender.
func TestListThatFailedWith200(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"errors":[{"code":"FORBIDDEN"}]}`:    "FORBIDDEN",
		`{"errors":[],"events":[{"id":"e1"}]}`: "",
		`{}`:                                   "",
		`{"errors":null}`:                      "",
		`[]`:                                   "",
		`not JSON`:                             "no list",
		`{"errors":[{"code":"` + "\u001b" + `[2J"}]}`: "no list", // a control character is no JSON
	} {
		l := listOf(t, config.Reconcile{Items: "body.events?", Error: "body.errors"}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
		_, _, err := l.read(t, lastDay())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", answer, err, want)
		}
	}
	l := listOf(t, config.Reconcile{Items: "body.events"}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) })
	if _, _, err := l.read(t, lastDay()); err == nil {
		t.Error("an answer without the list is an empty list, and nobody said so")
	}
}

// A POST carries the parameters as a JSON object, numbers as numbers, and the
// next page keeps the others.
func TestListByPost(t *testing.T) {
	t.Parallel()
	var bodies []string
	l := listOf(t, config.Reconcile{Method: "POST", Items: "body.data", Next: "page", Cursor: "paging.number", Size: "paging.size", PageSize: 1,
		From: "filter.since", Unit: "ms", Query: map[string]string{"filter.kind": "all", "sort": "asc"}},
		func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, r.Method+" "+r.Header.Get("Content-Type")+" "+r.URL.RawQuery+string(body))
			fmt.Fprint(w, []string{`{"data":[{"id":"e1"}]}`, `{"data":[]}`}[min(len(bodies)-1, 1)])
		})
	span := lastDay()
	if ids, _, err := l.read(t, span); err != nil || !slices.Equal(ids, []string{"e1"}) {
		t.Fatalf("%v: %v", err, ids)
	}
	since := span.From.Add(-time.Millisecond).UnixMilli()
	want := []string{
		fmt.Sprintf(`POST application/json {"filter":{"kind":"all","since":%d},"paging":{"size":1},"sort":"asc"}`, since),
		fmt.Sprintf(`POST application/json {"filter":{"kind":"all","since":%d},"paging":{"number":2,"size":1},"sort":"asc"}`, since),
	}
	if !slices.Equal(bodies, want) {
		t.Errorf("%q, want %q", bodies, want)
	}
}

// A parameter that is a member and leads to one is told of at the start.
func TestListWhoseParametersCollide(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]config.Reconcile{
		"a member that is an object": {Query: map[string]string{"filter": "all", "filter.kind": "x"}},
		"an object as the cursor":    {Query: map[string]string{"paging.kind": "all"}, Next: "page", Cursor: "paging", PageSize: 1},
	} {
		in.URL, in.Method, in.Items = config.StringList{"https://api.example.test/events"}, "POST", "body.data"
		_, problems := Compile(config.Source{Name: "shop", Verify: &config.Scheme{Auth: "none", ID: config.StringList{"body.id"}}, Reconcile: &in}, "source[0]", noEnv)
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), "reconcile.query") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A page that is empty is not the end where the list says that there is more:
// senders filter what they have taken from their store.
func TestListWithAnEmptyPage(t *testing.T) {
	t.Parallel()
	asked := 0
	l := listOf(t, config.Reconcile{Items: "body.data", Next: "body", NextAt: "body.cursor", Cursor: "after", More: "body.more"},
		func(w http.ResponseWriter, _ *http.Request) {
			asked++
			fmt.Fprint(w, []string{`{"data":[{"id":"e1"}],"more":true,"cursor":"a"}`, `{"data":[],"more":true,"cursor":"b"}`,
				`{"data":[{"id":"e2"}],"more":false,"cursor":"c"}`}[min(asked-1, 2)])
		})
	if ids, _, err := l.read(t, lastDay()); err != nil || !slices.Equal(ids, []string{"e1", "e2"}) || asked != 3 {
		t.Errorf("%v: %v after %d pages", err, ids, asked)
	}
}

// A list that says there is more and gives no way on, or the way that led there,
// was not read to its end: that is no success.
func TestListWithoutAWayOn(t *testing.T) {
	t.Parallel()
	const none, circle = "gives no way on", "in a circle"
	for name, c := range map[string]struct {
		in      config.Reconcile
		answers []string
		want    string // "" is the end
	}{
		"no item to go by":      {config.Reconcile{Next: "last-id", Cursor: "after"}, []string{`{"data":[],"more":true}`}, none},
		"no item on the second": {config.Reconcile{Next: "last-id", Cursor: "after"}, []string{`{"data":[{"id":"e1"}],"more":true}`, `{"data":[],"more":1}`}, none},
		"the last item again":   {config.Reconcile{Next: "last-id", Cursor: "after"}, []string{`{"data":[{"id":"e1"}],"more":true}`}, circle},
		"no cursor":             {config.Reconcile{Next: "body", NextAt: "body.next", Cursor: "after"}, []string{`{"data":[{"id":"e1"}],"more":true}`}, none},
		"an empty cursor":       {config.Reconcile{Next: "body", NextAt: "body.next", Cursor: "after"}, []string{`{"data":[],"more":true,"next":""}`}, none},
		"no address":            {config.Reconcile{Next: "body", NextAt: "body.next"}, []string{`{"data":[{"id":"e1"}],"more":true,"next":null}`}, none},
		"the cursor just used":  {config.Reconcile{Next: "body", NextAt: "body.next", Cursor: "after"}, []string{`{"data":[],"more":true,"next":"a"}`}, circle},
		"no link":               {config.Reconcile{Next: "link"}, []string{`{"data":[{"id":"e1"}],"more":true}`}, none},
		"one page alone":        {config.Reconcile{}, []string{`{"data":[{"id":"e1"}],"more":true}`}, none},
		"a page that is not full": {config.Reconcile{Next: "time", At: "body.at", From: "from", Order: "oldest", Size: "limit", PageSize: 2},
			[]string{`{"data":[],"more":true}`}, none},
		"a number leads on":    {config.Reconcile{Next: "page", Cursor: "page"}, []string{`{"data":[],"more":true}`, `{"data":[{"id":"e1"}],"more":false}`}, ""},
		"pages without an end": {config.Reconcile{Next: "page", Cursor: "page", MaxPages: 3}, []string{`{"data":[],"more":true}`}, "max_pages"},
		"no more":              {config.Reconcile{Next: "last-id", Cursor: "after"}, []string{`{"data":[],"more":false}`}, ""},
		"no word of more":      {config.Reconcile{Next: "body", NextAt: "body.next", Cursor: "after"}, []string{`{"data":[{"id":"e1"}]}`}, ""},
	} {
		asked := 0
		c.in.Items, c.in.More = "body.data", "body.more"
		l := listOf(t, c.in, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, c.answers[min(asked, len(c.answers)-1)])
			asked++
		})
		_, _, err := l.read(t, lastDay())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// What an answer says about what to do next.
func TestListThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		answer func(http.ResponseWriter)
		want   string
	}{
		"no token":  {func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, "reconcile.token"},
		"not there": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, "reconcile.url"},
		"elsewhere": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "https://other.test/x?k=v")
			w.WriteHeader(302)
		}, "to https://other.test, which is not followed"},
		"a page":     {func(w http.ResponseWriter) { fmt.Fprint(w, "<html>log in") }, "it is a page for people"},
		"tomorrow":   {func(w http.ResponseWriter) { w.Header().Set("Retry-After", "86400"); w.WriteHeader(429) }, "asks to wait for 24h0m0s"},
		"its repair": {func(w http.ResponseWriter) { w.Header().Set("Retry-After", "7200"); w.WriteHeader(503) }, "asks to wait for 2h0m0s"},
	} {
		asked := 0
		l := listOf(t, config.Reconcile{Items: "body.data"}, func(w http.ResponseWriter, _ *http.Request) { asked++; one.answer(w) })
		_, _, err := l.read(t, lastDay())
		if err == nil || !strings.Contains(err.Error(), one.want) || strings.Contains(err.Error(), "k=v") || asked != 1 {
			t.Errorf("%s: %v after %d requests, want %q", name, err, asked, one.want)
		}
	}
}
