package page

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"creel/event"
)

// What turns the line around, has no shape or is no text is shown as its code
// wherever a stranger can write: a row looks like nothing that it is not.
func TestBugUI01NothingDeceivesTheEye(t *testing.T) {
	t.Parallel()
	const odd = "a\u202egpj.exe\u2066b\u200bc\xffd\u0007e\u3164f\u00adg\u2028h"
	const want = "a‹U+202E›gpj.exe‹U+2066›b‹U+200B›c‹ff›d‹U+0007›e‹U+3164›f‹U+00AD›g‹U+2028›h"
	s := newStand(t, "")
	e := event.Event{Seq: 1, Key: event.Key{Source: "shop", ID: odd}, Type: odd, Object: odd, Version: odd, State: event.Dead, Error: odd, Run: 1,
		ReceivedAt: began, FinishedAt: began}
	s.event = Detail{Work: event.Work{Event: e, Payload: event.Payload{Body: []byte(odd)}}, Body: []byte(odd), Verdicts: []event.Verdict{{Rule: odd, Reason: odd}},
		Deliveries: []Attempted{{Delivery: event.Delivery{ID: 1, Destination: "app", Target: odd, Key: odd}, Attempts: []event.Attempt{{Answer: odd, Error: odd}}}},
		Actions:    []event.Action{{Actor: odd, Reason: odd, Target: odd}}}
	s.letters = []Letter{{Event: e, Head: []byte(odd)}}
	b := s.browser(t)
	b.login(t)
	for path, least := range map[string]int{"/?view=flat": 5, "/events": 3, "/event?key=shop/a": 12} {
		res, text := b.get(t, path)
		status(t, path, res, http.StatusOK)
		if n := strings.Count(html.UnescapeString(text), want); n < least {
			t.Errorf("%s shows it %d times", path, n)
		}
		if !strings.Contains(text, "href=\"/event?key=shop%2F%2Fa%E2%80%AEgpj.exe") {
			t.Errorf("%s: the links are not what they were", path)
		}
		for rest := text; rest != ""; {
			shown, tag, _ := strings.Cut(rest, "<")
			if strings.ContainsAny(shown, "\u202e\u2066\u200b\u0007\u3164\u00ad\u2028") || !utf8.ValidString(shown) {
				t.Errorf("%s shows %q", path, shown)
			}
			_, rest, _ = strings.Cut(tag, ">")
		}
	}
}

// A field holds what was searched for exactly, and beside it stands what of that
// is not seen in it.
func TestBugUI01FieldsSayWhatTheyDoNotShow(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	s.page.opt.Data = recorded{shown{stand: s}, new([]event.Key), new([]string)}
	b := s.browser(t)
	b.login(t)
	for _, one := range []struct{ value, want string }{
		{"a\u202egpj.exe\u2066b", "“a‹U+202E›gpj.exe‹U+2066›b”"}, {"cust ", "“cust ”"}, {"\u00a0cust", "“\u00a0cust”"}, {"cust 1", ""}, {"", ""},
	} {
		for path, fields := range map[string][]string{
			"/objects": {"object"}, "/balances": {"holder"}, "/ledger": {"holder", "unit"}, "/records": {"kind", "key"},
			"/deliveries": {"error", "key"}, "/events": {"q"},
		} {
			value := one.value
			if path == "/events" && value != "" {
				value = `"` + value + `"`
			}
			given := url.Values{}
			for _, field := range fields {
				given.Set(field, value)
			}
			res, text := b.get(t, path+"?"+given.Encode())
			status(t, path, res, http.StatusOK)
			text = html.UnescapeString(text)
			if n := strings.Count(text, `value="`+value+`"`); one.value != "" && n < len(fields) {
				t.Errorf("%s: %d fields hold %q", path, n, value)
			}
			want := len(fields)
			if one.want == "" || path == "/events" && strings.HasPrefix(one.value, "cust") || path == "/events" && strings.HasSuffix(one.value, "cust") {
				want = 0 // the quotes show where it ends
			}
			if n := strings.Count(text, "Not all of it is seen"); n != want {
				t.Errorf("%s: %d fields say what of %q is not seen, want %d", path, n, value, want)
			}
			if path != "/events" && strings.Count(text, one.want) < want {
				t.Errorf("%s: %q is not there:\n%s", path, one.want, text)
			}
		}
	}
}

// What people write is shown as they wrote it.
func TestLanguagesAreShown(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"naïve café", "e\u0301te\u0301", "日本\u3000語", "שלום عليكم", "हिन्दी क्\u200dष", "می\u200cخواهم", "👩\u200d👩\u200d👧 ❤\ufe0f", "10\u00a0€, 1\u202f000", "Ελληνικά"} {
		if got, odd := visible([]byte(text)); got != text || odd != "" {
			t.Errorf("%q is shown as %q (%s)", text, got, odd)
		}
	}
	for text, want := range map[string]string{"evt_\u200d1": "evt_‹U+200D›1", "é\u200d\u200d": "é\u200d‹U+200D›", "a" + strings.Repeat("\u0301", 6): "a" + strings.Repeat("\u0301", 4) + "‹U+0301›‹U+0301›"} {
		if got, _ := visible([]byte(text)); got != want {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

// The head of a body ends with a whole character.
func TestHeadsEndWithAWholeCharacter(t *testing.T) {
	t.Parallel()
	text := "aé日👩"
	for i := range len(text) + 1 {
		if got := showHead([]byte(text)[:i]); strings.Contains(got, "‹") || !strings.HasPrefix(text, got) {
			t.Errorf("the first %d bytes are shown as %q", i, got)
		}
	}
	if got := showHead([]byte("a\xff")); got != "a‹ff›" {
		t.Errorf("what is no character is shown as %q", got)
	}
}
