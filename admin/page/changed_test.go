package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"creel/event"
)

// ofObject makes a stand whose event is the one of an id, among others of its
// object, the newest first; what is in bodies is kept.
func ofObject(t *testing.T, id string, bodies map[string][]byte, all ...event.Event) *stand {
	t.Helper()
	s := newStand(t, "")
	s.same, s.bodies = all, bodies
	for _, e := range all {
		if e.Key.ID == id {
			s.event = Detail{Work: event.Work{Event: e, Payload: event.Payload{Body: bodies[id]}}, Body: bodies[id]}
		}
	}
	return s
}

func ofSub(seq int64, id, version string) event.Event {
	return event.Event{Seq: seq, Key: event.Key{Source: "shop", ID: id}, Object: "sub_1", Version: version, State: event.Done, Run: 1, ReceivedAt: began}
}

// The difference is to the event of the same object that came one step before:
// by version, else by receipt; and it is offered where that one's body is kept.
func TestAnEventIsComparedWithTheOneBefore(t *testing.T) {
	t.Parallel()
	three := []event.Event{ofSub(3, "c", "2"), ofSub(2, "b", "3"), ofSub(1, "a", "1")}
	plain := []event.Event{ofSub(3, "c", ""), ofSub(2, "b", ""), ofSub(1, "a", "")}
	other := []event.Event{ofSub(2, "b", ""), ofSub(1, "a", "")}
	other[1].Key.Account = "acct_2"
	var many []event.Event
	for i := int64(40); i > 0; i-- {
		many = append(many, ofSub(i, fmt.Sprint("e", i), fmt.Sprint(i)))
	}
	all := map[string][]byte{"a": []byte(`{"n":"of a"}`), "b": []byte(`{"n":"of b"}`), "c": []byte(`{"n":"of c"}`),
		"e20": []byte(`{"n":"of e20"}`), "e19": []byte(`{"n":"of e19"}`)}
	for name, c := range map[string]struct {
		id     string
		bodies map[string][]byte
		all    []event.Event
		want   string // "" is none
	}{
		"by version":                {"b", all, three, "c"},
		"by version, the late one":  {"c", all, three, "a"},
		"by receipt":                {"c", all, plain, "b"},
		"the first":                 {"a", all, plain, ""},
		"not kept":                  {"c", map[string][]byte{"c": all["c"], "a": all["a"]}, plain, ""},
		"its own is not kept":       {"c", map[string][]byte{"b": all["b"]}, plain, ""},
		"of another account":        {"b", all, other, ""},
		"beyond the newest of many": {"e20", all, many, "e19"},
	} {
		s := ofObject(t, c.id, c.bodies, c.all...)
		b := s.browser(t)
		b.login(t)
		res, text := b.get(t, "/event?key=shop/"+c.id+"&show=changed")
		status(t, name, res, http.StatusOK)
		offered := strings.Contains(text, "&amp;show=changed#body")
		if offered != (c.want != "") || c.want != "" && (!strings.Contains(text, "-   &#34;n&#34;: &#34;of "+c.want+"&#34;\n</del>") ||
			!strings.Contains(text, "+   &#34;n&#34;: &#34;of "+c.id+"&#34;\n</ins>")) {
			t.Errorf("%s: offered %v, want from %q:\n%s", name, offered, c.want, text)
		}
	}
}

// What differs is said in words, by signs and by elements; what can not be
// compared is said too.
func TestADifferenceIsSaid(t *testing.T) {
	t.Parallel()
	large := func(word string) []byte {
		var b strings.Builder
		b.WriteString("[")
		for i := range 20_000 {
			fmt.Fprintf(&b, "%q,", fmt.Sprint(word, i))
		}
		return []byte(b.String() + "1]")
	}
	for name, c := range map[string]struct {
		was, is []byte
		want    []string
	}{
		"one line": {[]byte(`{"id":"a","n":1152921506151679042}`), []byte(`{"id":"a","n":1152921506151679043}`),
			[]string{`<del><span class="hidden">removed: </span>-   &#34;n&#34;: 1152921506151679042`, `<ins><span class="hidden">added: </span>+   &#34;n&#34;: 1152921506151679043`,
				"1 line removed", "1 line added"}},
		"blanks":     {[]byte(`{"id": "a" }`), []byte("{\n\"id\":\"a\"}"), []string{"no line differs"}},
		"large":      {append([]byte(`[0,`), large("x")[1:]...), large("x"), []string{"1 line removed", "0 lines added", "first 64 KiB of each"}},
		"all others": {large("x"), large("y"), []string{"too little in common"}},
		"evil":       {[]byte("<script>"), []byte("</pre></ins><script>"), []string{"+ &lt;/pre&gt;&lt;/ins&gt;&lt;script&gt;", "- &lt;script&gt;"}},
	} {
		s := ofObject(t, "b", map[string][]byte{"a": c.was, "b": c.is}, ofSub(2, "b", ""), ofSub(1, "a", ""))
		b := s.browser(t)
		b.login(t)
		_, text := b.get(t, "/event?key=shop/b&show=changed")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", name, want, text[max(strings.Index(text, `id="body"`), 0):])
			}
		}
	}
}
