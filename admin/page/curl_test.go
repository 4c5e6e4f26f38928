package page

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"creel/event"
)

// shellWords are the arguments that a shell gives to curl.
func shellWords(t *testing.T, command string) []string {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-eu")
	shell.Dir = t.TempDir()
	shell.Stdin = strings.NewReader("curl() { printf '%s\\0' \"$@\"; }\n" + command + "\n")
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// A command says every header that can be said, as it is stored, whatever is in
// it, and runs nothing of what a sender wrote.
func TestCurlSaysWhatCame(t *testing.T) {
	t.Parallel()
	key := event.Key{Source: "shop", ID: "evt_1/$(id)"}
	const file = "@shop-evt-1---id-.body"
	for name, c := range map[string]struct {
		payload event.Payload
		want    []string // behind -X POST
		left    int
	}{
		"plain": {event.Payload{Header: "Host: shop.example\nContent-Length: 2\nContent-Type: application/json; charset=utf-8\nX-Signature: [redacted]\nX-Many: 1\nX-Many: 2\nX-Empty: \n"},
			[]string{anyApp, "-H", "Content-Type: application/json; charset=utf-8", "-H", "X-Signature: [redacted]", "-H", "X-Many: 1", "-H", "X-Many: 2", "-H", "X-Empty;"}, 0},
		"without a type": {event.Payload{}, []string{anyApp, "-H", "Content-Type: application/octet-stream"}, 0},
		"a part of a request": {event.Payload{Part: "body.0", Header: "Content-Type: text/plain\n"},
			[]string{anyApp, "-H", "Content-Type: application/json"}, 0},
		"of the connection": {event.Payload{Header: "content-type: a/b\nConnection: keep-alive, X-Hop\nKeep-Alive: 5\nX-Hop: 1\nTE: trailers\nTransfer-Encoding: chunked\nUpgrade: h2c\nExpect: 100-continue\nAccept-Encoding: gzip\nX-Own: 1\n"},
			[]string{anyApp, "-H", "Content-Type: a/b", "-H", "X-Own: 1"}, 0},
		"quotes": {event.Payload{Header: "Content-Type: a'/$(id)\nX-A: it's `id` $(id) \"$HOME\" \\ !! ;&|\n"},
			[]string{anyApp, "-H", "Content-Type: a'/$(id)", "-H", "X-A: it's `id` $(id) \"$HOME\" \\ !! ;&|"}, 0},
		"what can not be said": {event.Payload{Header: "Content-Type: a/b\nX-Tab: a\tb\nX-Escape: \x1b[31m\nX-Bidi: \u202eab\nX-Bytes: \xff\nX-Ok: ä\n@file: x\n: x\nX-Long: " + strings.Repeat("x", curlLongest) + "\n"},
			[]string{anyApp, "-H", "Content-Type: a/b", "-H", "X-Ok: ä"}, 7},
		"a query": {event.Payload{Query: "a=[1]&b='"}, []string{anyApp + "?a=[1]&b='", "-H", "Content-Type: application/octet-stream"}, 0},
	} {
		got := asCurl(key, &c.payload)
		want := append([]string{"-X", "POST"}, append(c.want, "--data-binary", file)...)
		if c.payload.Query != "" {
			want = append([]string{"--globoff"}, want...)
		}
		if args := shellWords(t, got.Text); !slices.Equal(args, want) || got.Left != c.left {
			t.Errorf("%s: %q, %d left out, want %q and %d", name, args, got.Left, want, c.left)
		}
	}
	many := &event.Payload{Header: strings.Repeat("X-A: 1\n", 10*curlMost)}
	if got := asCurl(key, many); strings.Count(got.Text, "-H ") > curlMost+1 || got.Left == 0 {
		t.Errorf("%d headers", strings.Count(got.Text, "-H "))
	}
}

// The page shows the command with the name under which the body is downloaded,
// and none where there is no body.
func TestAnEventIsShownAsCurl(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	s.event = Detail{Work: event.Work{Event: event.Event{Seq: 1, Key: event.Key{Source: "shop", ID: "a"}, Run: 1},
		Payload: event.Payload{Body: []byte(`{"a":1}`), Header: "Content-Type: application/json\nX-A: </pre><script>\n"}}, Body: []byte(`{"a":1}`)}
	b := s.browser(t)
	b.login(t)
	_, text := b.get(t, "/event?key=shop/a")
	res, _ := b.get(t, "/event/body?key=shop/a")
	status(t, "download", res, http.StatusOK)
	for _, want := range []string{"--data-binary @shop-a.body", "X-A: &lt;/pre&gt;&lt;script&gt;", `data-copy="curl"`} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if name := res.Header.Get("Content-Disposition"); name != "attachment; filename=shop-a.body" {
		t.Error(name)
	}
	s.event.Payload.Body, s.event.Body = nil, nil
	if _, text = b.get(t, "/event?key=shop/a"); strings.Contains(text, "curl") {
		t.Error(fmt.Sprint("a command without a body: ", text))
	}
}
