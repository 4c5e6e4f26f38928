package page

import (
	"net/http"
	"strings"
	"testing"

	"creel/event"
)

func at(field, value string, steps ...string) Place {
	return Place{event.IndexValue{Field: field, Value: value}, steps}
}

// The values at the places that a source lists are marked, no others, and the
// text stays what it is to the byte.
func TestValuesThatFindEventsAreMarked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string
		places []Place
		want   string // what is marked, with its query
	}{
		"a text":             {`{"id":"in_1","data":{"object":{"id":"in_1","customer":"cus_1"}}}`, []Place{at("body.data.object.customer", "cus_1", "data", "object", "customer")}, `"cus_1"=source:shop body.data.object.customer:cus_1`},
		"a number, exact":    {`{"n":1152921506151679042,"m":1152921506151679042}`, []Place{at("body.n", "1152921506151679042", "n")}, `1152921506151679042=source:shop body.n:1152921506151679042`},
		"a word":             {`{"live":true}`, []Place{at("body.live", "true", "live")}, `true=source:shop body.live:true`},
		"an element":         {`{"list":[{"a":"x"},{"a":"x"}]}`, []Place{at("body.list.1.a", "x", "list", "1", "a")}, `"x"=source:shop body.list.1.a:x`},
		"an element of two":  {`[["x","x"],"x"]`, []Place{at("body.0.1", "x", "0", "1")}, `"x"=source:shop body.0.1:x`},
		"blanks and quotes":  {`{"a":"two \"words\" {[,:"}`, []Place{at("body.a", `two "words" {[,:`, "a")}, `"two \"words\" {[,:"=source:shop body.a:"two \"words\" {[,:"`},
		"an escaped name":    {`{"\u0061":"x"}`, []Place{at("body.a", "x", "a")}, `"x"=source:shop body.a:x`},
		"a value that names": {`{"a":"b","b":"a"}`, []Place{at("body.b", "a", "b")}, `"a"=source:shop body.b:a`},
		"two":                {`{"a":1,"b":{"c":2}}`, []Place{at("body.b.c", "2", "b", "c"), at("body.a", "1", "a")}, `1=source:shop body.a:1|2=source:shop body.b.c:2`},
		"another value":      {`{"a":"[redacted]"}`, []Place{at("body.a", "x", "a")}, ""},
		"deeper":             {`{"a":{"a":"x"}}`, []Place{at("body.a", "x", "a")}, ""},
		"no query can say":   {`{"a b":"x"}`, []Place{at("body.a b", "x", "a b")}, ""},
		"cut off":            {`{"a":"x`, []Place{at("body.a", "x", "a")}, ""},
		"cut off, a number":  {`{"a":12`, []Place{at("body.a", "12", "a")}, ""},
		"not JSON":           {`}}]],,:x"`, []Place{at("body.a", "x", "a")}, ""},
		"odd characters":     {"{\"a\":\"\u202ex\",\"b\":\"y\"}", []Place{at("body.b", "y", "b")}, `"y"=source:shop body.b:y`},
	} {
		text := indent([]byte(c.body))
		var whole strings.Builder
		var marked []string
		for _, one := range pieces(text, "shop", c.places) {
			whole.WriteString(one.Text)
			if one.Query != "" {
				marked = append(marked, one.Text+"="+one.Query)
			}
		}
		if want, _ := visible(text); whole.String() != want {
			t.Errorf("%s: %q, want %q", name, whole.String(), want)
		}
		if got := strings.Join(marked, "|"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A marked value leads to the events that have it, and is text nevertheless.
func TestAMarkedValueIsALink(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	body := []byte(`{"a":"<b>\"&'","n":1}`)
	s.event = Detail{Work: event.Work{Event: event.Event{Seq: 1, Key: event.Key{Source: "shop", ID: "a"}, Run: 1}, Payload: event.Payload{Body: body}}, Body: body}
	s.places = []Place{at("body.a", `<b>"&'`, "a")}
	b := s.browser(t)
	b.login(t)
	res, text := b.get(t, "/event?key=shop/a")
	status(t, "event", res, http.StatusOK)
	if !strings.Contains(text, `&#34;a&#34;: <a href="/events?q=source%3Ashop&#43;body.a%3A%22%3Cb%3E%5C%22%26%27%22">`) {
		t.Errorf("no link:\n%s", text[strings.Index(text, `id="bodytext"`):])
	}
	if !strings.Contains(text, `&#34;&lt;b&gt;\&#34;&amp;&#39;&#34;</a>`) || strings.Contains(text, "<b>") {
		t.Errorf("not as text:\n%s", text[strings.Index(text, `id="bodytext"`):])
	}
	if _, text = b.get(t, "/event?key=shop/a&show=raw"); strings.Contains(text, "body.a") {
		t.Error("a raw body has links")
	}
}
