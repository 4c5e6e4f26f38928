package page

import (
	"net/http"
	"strings"
	"testing"

	"creel/event"
)

// TestBugUI01PayloadIsText puts what would run into every place that a stranger
// can write to, and finds it shown as text.
func TestBugUI01PayloadIsText(t *testing.T) {
	t.Parallel()
	for _, evil := range []string{`<script>document.title='pwn'</script>`, `"><img src=x onerror=alert(1)>`, `</script><script>alert(1)</script>`,
		`</pre><svg onload=alert(1)>`, `javascript:alert(1)`, `{{template "layout"}}`, "' onmouseover='alert(1)", "</title><script>alert(1)</script>"} {
		s := newStand(t, "")
		e := event.Event{Seq: 1, Key: event.Key{Source: evil, Account: evil, ID: evil}, Type: evil, Object: evil, Version: evil, Tenant: evil,
			State: event.Dead, Error: evil, Run: 1, Lane: evil, ReceivedAt: began, FinishedAt: began}
		s.event = Detail{Work: event.Work{Event: e, Payload: event.Payload{Body: []byte(`{"note":"` + evil + `"}`), Header: "User-Agent: " + evil + "\n", Part: evil}},
			Deliveries: []Attempted{{Delivery: event.Delivery{ID: 1, Destination: evil, Target: evil, Rule: evil, Key: evil, State: event.DeliveryDead, Error: evil},
				Attempts: []event.Attempt{{Outcome: event.Permanent, Error: evil, Answer: evil}}}},
			Verdicts: []event.Verdict{{Rule: evil, Reason: evil}}, Records: []event.KeptRecord{{Kind: evil, Key: evil, Fields: []event.Field{{Name: evil, Value: evil}}}},
			Entries: []event.Entry{{Holder: evil, Unit: evil, Key: evil}}, Transitions: []event.Transition{{Object: evil, From: evil, State: evil, Key: evil}},
			Conflicts: []Conflict{{Payload: event.Payload{Body: []byte(evil)}}}, OtherBodies: 1, Actions: []event.Action{{Actor: evil, Reason: evil, Target: evil}}}
		s.event.Body = s.event.Payload.Body
		s.letters = []Letter{{Event: e, Head: []byte(evil)}}
		b := s.browser(t)
		b.login(t)
		for _, path := range []string{"/?view=flat", "/events", "/event?key=shop/a", "/event?key=shop/a&show=raw", "/event?key=shop/a&show=headers"} {
			res, text := b.get(t, path)
			status(t, path, res, http.StatusOK)
			for _, running := range []string{"<script>", "<img src=x", "<svg onload", "' onmouseover='", `href="javascript:`} {
				if strings.Contains(text, running) {
					t.Errorf("%s: %q runs as %q", path, evil, running)
				}
			}
			if strings.Contains(text, "</title>") != true || strings.Count(text, "</title>") != 1 {
				t.Errorf("%s: %q ends the title", path, evil)
			}
		}
		res, text := b.get(t, "/event/body?key=shop/a")
		if h := res.Header; h.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") ||
			!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || text != string(s.event.Payload.Body) {
			t.Errorf("the download: %v", h)
		}
	}
}

// What was removed after the retention is said to be, and has no size.
func TestWhatIsGoneIsSaid(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	s.event = Detail{Work: event.Work{Event: event.Event{Seq: 1, Key: event.Key{Source: "shop", ID: "a"}, State: event.Done, ReceivedAt: began}},
		Conflicts: []Conflict{{Seen: 1, FirstAt: began}, {Payload: event.Payload{Body: []byte("here")}, Seen: 2, FirstAt: began}}, OtherBodies: 2}
	b := s.browser(t)
	b.login(t)
	_, text := b.get(t, "/event?key=shop//a")
	if strings.Contains(text, "0 B") || strings.Count(text, "removed after the retention") != 1 || !strings.Contains(text, "4 B") ||
		!strings.Contains(text, "<dt>Body</dt><dd>not kept (any more), or empty</dd>") {
		t.Errorf("%s", text)
	}
}

// What is shown of a body is the sender's own: numbers, order, names that stand
// twice; and no byte of it turns the line around.
func TestPrettyBodiesAreTheSendersOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"numbers":    {`{"a":1152921506151679042,"b":1.0,"c":1e400,"d":-0}`, "{\n  \"a\": 1152921506151679042,\n  \"b\": 1.0,\n  \"c\": 1e400,\n  \"d\": -0\n}"},
		"order":      {`{"z":1,"a":2,"z":3}`, "{\n  \"z\": 1,\n  \"a\": 2,\n  \"z\": 3\n}"},
		"strings":    {`{"a":"x: {\"y\", [1]}\\"}`, "{\n  \"a\": \"x: {\\\"y\\\", [1]}\\\\\"\n}"},
		"escapes":    {`["\u0041\ud83d"]`, "[\n  \"\\u0041\\ud83d\"\n]"},
		"empty":      {`{"a":{},"b":[ ]}`, "{\n  \"a\": {},\n  \"b\": []\n}"},
		"white":      {"{\r\n \"a\" :\t1 }", "{\n  \"a\": 1\n}"},
		"bidi":       {"{\"a\":\"\u202egpj.exe\"}", "{\n  \"a\": \"‹U+202E›gpj.exe\"\n}"},
		"no JSON":    {"a: <b>\n", "a: <b>\n"},
		"no UTF-8":   {"\xff\x00a", "‹ff›‹U+0000›a"},
		"not closed": {`{"a":1`, `{"a":1`},
	} {
		if got := showBody([]byte(c.body), true).Text; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A body of any size or depth is shown by its head, quickly.
func TestBugUI04LargeBodies(t *testing.T) {
	t.Parallel()
	deep := []byte(strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000))
	large := []byte(`{"a":"` + strings.Repeat("ä", 12<<20) + `"}`)
	for name, body := range map[string][]byte{"deep": deep, "large": large, "many": []byte("[" + strings.Repeat("1,", 1<<20) + "1]")} {
		s := showBody(body, true)
		if !s.Cut || len(s.Text) > 2*prettyMost || s.Odd != "" {
			t.Errorf("%s: %d bytes are shown of %d, cut %v, odd %q", name, len(s.Text), len(body), s.Cut, s.Odd)
		}
	}
}
