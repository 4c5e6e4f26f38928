package path

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"creel/event"
)

func redaction(t testing.TB, places ...string) *Redaction {
	t.Helper()
	r, err := ParseRedaction(places)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const formType = "Content-Type: application/x-www-form-urlencoded\n"

// Every other byte stays as it is, whoever wrote the body and however.
func TestRedaction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		places string
		part   string
		header string
		body   string
		want   string
	}{
		"a member":                {"body.a.b", "", "", `{"a": {"b" : "canary" , "c":1e400}}`, `{"a": {"b" : "[redacted]" , "c":1e400}}`},
		"any kind":                {"body.a", "", "", "{\"a\":[{\"x\":\"canary\"},7],\r\n\t\"b\":[]}", "{\"a\":\"[redacted]\",\r\n\t\"b\":[]}"},
		"a number":                {"body.a", "", "", `{"a":4111111111111111}`, `{"a":"[redacted]"}`},
		"null is a value":         {"body.a", "", "", `{"a":null}`, `{"a":"[redacted]"}`},
		"twice":                   {"body.a.b", "", "", `{"a":{"b":"canary","b":["canary"]},"a":{"b":"canary"}}`, `{"a":{"b":"[redacted]","b":"[redacted]"},"a":{"b":"[redacted]"}}`},
		"an escaped name":         {"body.card", "", "", `{"\u0063ard":"canary","c\u0061rd":"canary","card\u0000":1}`, `{"\u0063ard":"[redacted]","c\u0061rd":"[redacted]","card\u0000":1}`},
		"a name with a dot":       {`body.a\.b`, "", "", `{"a.b":"canary","a":{"b":1}}`, `{"a.b":"[redacted]","a":{"b":1}}`},
		"a quote in a value":      {"body.a", "", "", `{"a":"canary\",\"b\":\"canary","c":"\\"}`, `{"a":"[redacted]","c":"\\"}`},
		"an index":                {"body.items.1", "", "", `{"items":["a","canary","b"]}`, `{"items":["a","[redacted]","b"]}`},
		"an index of an object":   {"body.items.1", "", "", `{"items":{"1":"canary","01":2}}`, `{"items":{"1":"[redacted]","01":2}}`},
		"every element":           {"body.items.*.n", "", "", `{"items":[{"n":"canary"},{"m":1,"n":"canary"},3]}`, `{"items":[{"n":"[redacted]"},{"m":1,"n":"[redacted]"},3]}`},
		"every member":            {"body.by.*.n", "", "", `{"by":{"x":{"n":"canary"},"y":{"n":"canary"}}}`, `{"by":{"x":{"n":"[redacted]"},"y":{"n":"[redacted]"}}}`},
		"a list on the way":       {"body.card.number", "", "", `{"card":[{"number":"canary"},[{"number":"canary"}]]}`, `{"card":[{"number":"[redacted]"},[{"number":"[redacted]"}]]}`},
		"a body that is a list":   {"body.n", "", "", `[{"n":"canary"},{"n":"canary"}]`, `[{"n":"[redacted]"},{"n":"[redacted]"}]`},
		"nothing there":           {"body.a.b.c", "", "", ` {"a":{"b":5},"c":"é\ud800"}` + "\n", ` {"a":{"b":5},"c":"é\ud800"}` + "\n"},
		"one inside another":      {"body.a.b|body.a", "", "", `{"a":{"b":"canary"}}`, `{"a":"[redacted]"}`},
		"the whole":               {"body", "", "", `{"a":"canary"}`, `"[redacted]"`},
		"bytes that are no UTF-8": {"body.a", "", "", "{\"a\":\"canary\",\"b\":\"\xff\xfe\"}", "{\"a\":\"[redacted]\",\"b\":\"\xff\xfe\"}"},
		"a byte order mark":       {"body.a", "", "", "\xef\xbb\xbf{\"a\":\"canary\"}", "\xef\xbb\xbf{\"a\":\"[redacted]\"}"},
		"two marks":               {"body.a", "", "", "\xef\xbb\xbf\xef\xbb\xbf{\"a\":\"canary\"}", RedactedWhole},
		"text behind it":          {"body.a", "", "", `{"a":"canary"} {"a":"canary"}`, RedactedWhole},
		"cut off":                 {"body.a", "", "", `{"a":"canary`, RedactedWhole},
		"cut off behind it":       {"body.z", "", "", `{"a":"canary","z":1,`, RedactedWhole},
		"an odd escape":           {"body.a", "", "", `{"a":"canary\x"}`, RedactedWhole},
		"single quotes":           {"body.a", "", "", `{'a':'canary'}`, RedactedWhole},
		"too deep":                {"body.a", "", "", strings.Repeat("[", 5000) + `"canary"` + strings.Repeat("]", 5000), RedactedWhole},
		"a form instead":          {"body.a", "", "", `a=canary`, RedactedWhole},
		"no body":                 {"body.a", "", "", ``, ``},

		"a field":                       {"form.card", "", formType, "a=1&card=canary&c%61rd=canary&b=%20+", "a=1&card=%5Bredacted%5D&c%61rd=%5Bredacted%5D&b=%20+"},
		"a field, whatever it says":     {"form.card", "", "", "card=canary", "card=%5Bredacted%5D"},
		"a field behind a mark":         {"form.card", "", "", "\xef\xbb\xbfcard=canary", "\xef\xbb\xbfcard=%5Bredacted%5D"},
		"no field in JSON":              {"form.card", "", "", `{"x":"&card=1&"}`, `{"x":"&card=1&"}`},
		"a field and a member":          {"form.card|body.card", "", formType, "card=canary", "card=%5Bredacted%5D"},
		"a field, a member, no form":    {"form.card|body.card", "", "", "x&card=canary", RedactedWhole},
		"JSON that says it is a form":   {"form.card|body.card", "", formType, `{"card":"canary`, RedactedWhole},
		"JSON in a field":               {"body.card", "form.payload", formType, "payload=%7B%22card%22%3A%22canary%22%7D&x=1", "payload=%7B%22card%22%3A%22%5Bredacted%5D%22%7D&x=1"},
		"JSON in a field that is none":  {"body.card", "form.payload", formType, "payload=%7B%22card%22%3A%22canary", RedactedWhole},
		"elements in a field":           {"body.card", "form.payload|body.0", formType, `payload=[{"card":"canary"},{"card":"canary"}]`, "payload=%5B%7B%22card%22%3A%22%5Bredacted%5D%22%7D%2C%7B%22card%22%3A%22%5Bredacted%5D%22%7D%5D"},
		"JSON in a text":                {"body.card", "body.message|body", "", `{"message":"{\"card\":\"canary\"}","id":1}`, `{"message":"{\"card\":\"[redacted]\"}","id":1}`},
		"its element":                   {"body.card", "body.events.1", "", `{"events":[{"card":"canary"},{"card":"canary"}],"card":1}`, `{"events":[{"card":"[redacted]"},{"card":"[redacted]"}],"card":1}`},
		"its element, further down":     {"body.card", "body.entry.0.changes.3", "", `{"entry":[{"changes":[{"card":"canary"}]},{"changes":[1,{"card":"canary"}]}]}`, `{"entry":[{"changes":[{"card":"[redacted]"}]},{"changes":[1,{"card":"[redacted]"}]}]}`},
		"the member of a list's member": {"body.events", "body.events.0", "", `{"events":[{"events":"canary","b":1}]}`, `{"events":[{"events":"[redacted]","b":1}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := event.Payload{Body: []byte(c.body), Header: c.header, Part: c.part}
			out := redaction(t, strings.Split(c.places, "|")...).Payload(in)
			if string(out.Body) != c.want {
				t.Errorf("got  %.200s\nwant %.200s", out.Body, c.want)
			}
			if string(in.Body) != c.body {
				t.Error("the request itself was changed")
			}
			if strings.Contains(string(out.Body), "canary") {
				t.Error("the canary is there")
			}
		})
	}
}

func TestRedactionOfHeadersAndQueries(t *testing.T) {
	t.Parallel()
	in := event.Payload{Header: "X-Token: canary\nHost: a\nx-token:canary\r\nX-Token-Id: 7\nbroken", Query: "a=1&t=canary&T=2&t=canary&t&%74=canary", Body: []byte("x")}
	out := redaction(t, "header.x-token", "query.t").Payload(in)
	if out.Header != "X-Token: [redacted]\nHost: a\nx-token: [redacted]\nX-Token-Id: 7\nbroken" {
		t.Errorf("%q", out.Header)
	}
	if out.Query != "a=1&t=%5Bredacted%5D&T=2&t=%5Bredacted%5D&t=%5Bredacted%5D&%74=%5Bredacted%5D" {
		t.Errorf("%q", out.Query)
	}
	if string(out.Body) != "x" {
		t.Errorf("%q", out.Body)
	}
	if got := (*Redaction)(nil).Payload(in); got.Header != in.Header {
		t.Errorf("none changes %+v", got)
	}
}

// What is redacted can be taken out of what quotes it.
func TestRedactionTexts(t *testing.T) {
	t.Parallel()
	r := redaction(t, "body.a", "header.x-token", "query.t", "form.f")
	got := r.Texts(event.Payload{Header: "X-Token: in a header\n", Query: "t=in%20a+query&t=1", Body: []byte(`{"a":{"name":"a \u0074ext","n":[41111,true,12]},"b":"other"}`)})
	slices.Sort(got)
	if want := "[41111 a text in a header in a query name true]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := r.Texts(event.Payload{Header: formType, Body: []byte(`f=in+a%20form`)}); fmt.Sprint(got) != "[in a form]" {
		t.Errorf("%v", got)
	}
}

func TestRedactionRefuses(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"", "card.number", "Body.a", "body.", "body..a", "header", "body.a?", "{body.a}"} {
		if _, err := ParseRedaction([]string{"body.fine", place}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", place)) {
			t.Errorf("%q: %v", place, err)
		}
	}
}

// FuzzRedaction: whatever the body, a place that can be read before can not be
// read after, JSON stays JSON, and a body without the place stays as it is.
func FuzzRedaction(f *testing.F) {
	for _, seed := range []string{`{"a":{"b":"canary"}}`, `{"a":[{"b":1},{"b":{"a":2}}],"a":null}`, `{"a":"b"}`, `[[{"a":{"b":[]}}]]`, "a=1&b=2", "\xef\xbb\xbf{}", `{"a":{"b":"\ud800"}`} {
		f.Add([]byte(seed), "")
		f.Add([]byte(seed), "body.a.0")
		f.Add([]byte(seed), "form.a|body.1")
	}
	place, err := Parse("body.a.b")
	if err != nil {
		f.Fatal(err)
	}
	r := redaction(f, "body.a.b")
	f.Fuzz(func(t *testing.T, body []byte, part string) {
		in := event.Payload{Body: body, Part: part}
		out := r.Payload(in)
		if string(out.Body) == RedactedWhole || len(body) == 0 {
			return
		}
		value, found, err := NewDocument(in).Get(place)
		again, still, _ := NewDocument(out).Get(place)
		switch {
		case err == nil && found && (!still || again.Text() != Redacted):
			t.Errorf("%q (part %q): %q stands in %q", body, part, value.Raw, out.Body)
		case part == "" && !found && err == nil && !strings.Contains(string(out.Body), Redacted) && string(out.Body) != string(body):
			t.Errorf("%q became %q", body, out.Body)
		}
		if json.Valid(body) && !json.Valid(out.Body) {
			t.Errorf("%q became %q", body, out.Body)
		}
	})
}

func TestTakeOut(t *testing.T) {
	t.Parallel()
	long := "a very long value, of which a message shows the beginning alone"
	texts := []string{"4111 1111", "41", "a \"quoted\"\ntext", long}
	for message, want := range map[string]string{
		"no 4111 1111 here": "no [redacted] here",
		`it is "a \"quoted\"\ntext", and a "quoted"` + "\ntext": `it is "[redacted]", and [redacted]`,
		"it is " + long[:40] + "…, " + long:                     "it is [redacted]…, [redacted]",
		long[:20] + " is too short to tell":                     long[:20] + " is too short to tell",
		"":                                                      "",
	} {
		if got := TakeOut(message, texts); got != want {
			t.Errorf("%q became %q, want %q", message, got, want)
		}
	}
}
