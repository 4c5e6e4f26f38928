package cli_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// TestForgedCursors gives every list a cursor that it did not write: it is
// refused, and nobody takes the newest page for an old one.
func TestForgedCursors(t *testing.T) {
	t.Parallel()
	s := busy(t)
	p, v := newProgram(t, s.Process, "robot", "read"), visit(t, s.Process, "ana", firstPassword(t, s.Process))
	for path, cursors := range map[string][]string{
		"/events":                        {"x", "-1", "0", "1e3", "9223372036854775808", "1.1"},
		"/deliveries":                    {"x", "-1", "9223372036854775808"},
		"/failures":                      {"1", "1.1x", "1.2.3", "-1.1", "+1.1", "01.1", "1.", ".1"},
		"/dead-letters":                  {"1d", "d1", "-1d1", "1d-1", "01d1", "1d1e1", "1f1", "e1"},
		"/dead-letters?q=o1":             {"1", "e", "e0", "e-1", "1d1"},
		"/conflicts":                     {"x", "-1"},
		"/duplicates":                    {"x", "shop//none"},
		"/records":                       {"x", "-1"},
		"/ledger":                        {"x", "-1"},
		"/actions":                       {"x", "-1"},
		"/incidents":                     {"x", "-1"},
		"/object/history?object=order/7": {"x", "-1"},
		"/balances":                      {"x", "-1", "AA=="},
	} {
		for _, cursor := range cursors {
			sign := "?"
			if strings.Contains(path, "?") {
				sign = "&"
			}
			if a := p.ask(t, "GET "+path+sign+"cursor="+url.QueryEscape(cursor), nil, nil); a.status != http.StatusUnprocessableEntity {
				t.Errorf("%s from %q: %d %s", path, cursor, a.status, a.text)
			}
			page := strings.NewReplacer("/failures", "/", "/dead-letters", "/?view=flat", "/actions", "/audit", "/incidents", "/alerts",
				"/object/history", "/objects").Replace(path)
			if sign = "?"; strings.Contains(page, "?") {
				page, sign = strings.Replace(page, "flat?", "flat&", 1), "&"
			}
			if path == "/balances" {
				continue // goes by names, any of which may be one
			}
			if res, _ := v.see(t, page+sign+"after="+url.QueryEscape(cursor)); res.StatusCode != http.StatusNotFound {
				t.Errorf("the page %s from %q: %s", page, cursor, res.Status)
			}
		}
	}
}

// TestFiltersAreNotPassedOver looks at lists narrowed by what means nothing: it
// is said, and a plan made from there is refused.
func TestFiltersAreNotPassedOver(t *testing.T) {
	t.Parallel()
	s := busy(t)
	v := visit(t, s.Process, "ana", firstPassword(t, s.Process))
	for path, says := range map[string]string{
		"/events?state=broken":        "is no state of an event",
		"/events?q=state:broken":      "is none of pending",
		"/deliveries?state=broken":    "is no state of a delivery",
		"/?q=state:done":              "Dead letters are dead, and not done",
		"/?view=flat&q=state:done":    "Dead letters are dead, and not done",
		"/?view=flat&since=yesterday": "is not a time",
	} {
		res, text := v.see(t, path)
		if res.StatusCode != http.StatusOK || !strings.Contains(text, says) || strings.Contains(text, "data-row") {
			t.Errorf("%s: %s, says %v", path, res.Status, strings.Contains(text, says))
		}
	}
	for _, form := range []url.Values{{"q": {"state:done"}}, {"q": {"type:order.*"}, "state": {"done"}}, {"since": {"yesterday"}}} {
		form.Set("do", "replay all")
		if res, text := v.post(t, "/plan", form); res.StatusCode != http.StatusBadRequest {
			t.Errorf("a plan of %v: %s %s", form, res.Status, text)
		}
	}
	// Groups of one kind.
	all, of := regexp.MustCompile(`data-row`), func(query string) string { _, text := v.see(t, "/?q="+url.QueryEscape(query)); return text }
	events, deliveries := len(all.FindAllString(of("kind:event"), -1)), len(all.FindAllString(of("kind:delivery"), -1))
	if both := len(all.FindAllString(of(""), -1)); events == 0 || deliveries == 0 || events+deliveries != both {
		t.Errorf("%d groups of events and %d of deliveries are %d", events, deliveries, both)
	}
}

// TestPagesOfAListThatGrows goes through lists page by page while rows arrive:
// none stands there twice, and none that was there is missed.
func TestPagesOfAListThatGrows(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	const before = 130
	for i := range before {
		s.send(t, fmt.Sprintf(`{"id":"old_%d","type":"order.paid"}`, i))
	}
	await(t, s.Process, before, "deliveries", "--state", "sent", "--limit", "200", "--json")
	v := visit(t, s.Process, "ana", firstPassword(t, s.Process))
	row, next := regexp.MustCompile(`data-row[^>]*>(?s:.*?)key=shop%2F%2F(\w+)`), regexp.MustCompile(`href="([^"]+)" rel="next"`)
	for _, path := range []string{"/events", "/deliveries", "/events?source=shop", "/deliveries?destination=app"} {
		seen, n := map[string]int{}, 0
		for path := path; path != ""; {
			_, text := v.see(t, strings.ReplaceAll(path, "&amp;", "&"))
			for _, found := range row.FindAllStringSubmatch(text, -1) {
				seen[found[1]]++
			}
			n++
			s.send(t, fmt.Sprintf(`{"id":"new_%s_%d","type":"order.paid"}`, regexp.MustCompile(`\W`).ReplaceAllString(path, ""), n))
			found := next.FindStringSubmatch(text)
			if path = ""; found != nil {
				path = found[1]
			}
		}
		for i := range before {
			if times := seen[fmt.Sprintf("old_%d", i)]; times != 1 {
				t.Errorf("%s: old_%d stands there %d times", path, i, times)
			}
		}
		if n < 3 {
			t.Errorf("%s has %d pages", path, n)
		}
	}
}

// TestActsOfNonsense asks for paces that nobody lives to see the end of and for
// reasons that are books: nothing is planned or done.
func TestActsOfNonsense(t *testing.T) {
	t.Parallel()
	s := busy(t)
	p, v := newProgram(t, s.Process, "robot", "operate"), visit(t, s.Process, "ana", firstPassword(t, s.Process))
	book := strings.Repeat("because ", 200)
	once := 0
	refused := func(operation string, body object) {
		t.Helper()
		once++
		if a := p.ask(t, operation, nil, body, "Idempotency-Key", fmt.Sprint(once)); a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s %v: %d %s", operation, body, a.status, a.text)
		}
	}
	for _, rate := range []float64{-1, 1e-300, 0.0009, 1e10} {
		refused("POST /plans", object{"action": "replay", "query": "state:dead", "rate": rate})
		refused("POST /replay", object{"query": "state:dead", "rate": rate})
	}
	refused("POST /plans", object{"action": "discard", "query": "state:dead", "rate": 1})
	for operation, body := range map[string]object{"POST /replay": {"query": "state:dead"}, "POST /pause": {"destination": "app"}, "POST /ack": {"all": true},
		"POST /rejects/retry": {"source": "shop"}, "POST /resolve": {"delivery": 1, "as": "dead"}} {
		body["reason"] = book
		refused(operation, body)
	}
	plan := v.plan(t, url.Values{"do": {"replay all"}})
	for path, form := range map[string]url.Values{plan: {}, "/switch": {"do": {"pause"}, "name": {"app"}}, "/acknowledge": {"incident": {"all"}}, "/retry": {"source": {"shop"}}} {
		form.Set("reason", book)
		if res, text := v.post(t, path, form); res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "A reason has at most") {
			t.Errorf("the page %s: %s", path, res.Status)
		}
	}
	if acted := lines[actionLine](t, s.Process, "audit", "--json"); len(acted) != 1 { // the token of this test
		t.Errorf("the audit trail has %+v", acted)
	}
}

// TestThePageLeadsToTheSameAsJSON follows the link below a list, however it is
// narrowed: the API has the same rows, for a session too.
func TestThePageLeadsToTheSameAsJSON(t *testing.T) {
	t.Parallel()
	s := busy(t)
	v := visit(t, s.Process, "ana", firstPassword(t, s.Process))
	link := regexp.MustCompile(`href="(/api/v1/[^"]+)">These as JSON`)
	for _, path := range []string{"/events", "/events?q=type:order.*&source=shop&since=24h", "/events?state=dead", "/?view=flat", "/?view=flat&q=source:shop&source=shop",
		"/?failure=1", "/?view=flat&destination=broken&since=7d"} {
		_, text := v.see(t, path)
		found := link.FindStringSubmatch(text)
		if found == nil {
			t.Errorf("%s has no link: %s", path, text)
			continue
		}
		res, answer := v.see(t, html.UnescapeString(found[1]))
		rows := strings.Count(text, "<tr data-row>")
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s leads to %s: %s", path, found[1], answer)
			continue
		}
		if n := len(decode[struct{ Items []any }](t, answer).Items); n != rows || n == 0 {
			t.Errorf("%s has %d rows, as JSON %d", path, rows, n)
		}
	}
}
