package receiver

import (
	"net/http"
	"strings"
	"testing"
	"unicode"
)

// FuzzHeaderLines: one line for each header line that is kept, each with a
// name and a value that can be read back, and nothing private.
func FuzzHeaderLines(f *testing.F) {
	f.Add("X-A", "b", "c", "close")
	f.Add("Connection", "X-A", "", "x-a, ,")
	f.Add("Cookie", "a=b", "c", "")
	f.Add("X-\xff", "\xff", ": ", "Connection")
	f.Fuzz(func(t *testing.T, name, first, second, connection string) {
		if name == "" || strings.ContainsFunc(name+first+second, func(r rune) bool { return unicode.IsControl(r) || r == ':' }) {
			return // net/http lets no such header through
		}
		header := http.Header{name: {first, second}, "Connection": {connection}, "Cookie": {"canary"}, "X-Token": {"canary"}}
		text := newFilter(nil, []string{"x-token"}).lines(header)
		if strings.Contains(text, "canary") && !strings.Contains(name+first+second, "canary") {
			t.Errorf("something private is kept: %q", text)
		}
		for line := range strings.Lines(text) {
			gotName, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			if !ok || gotName != name || value != first && value != second {
				t.Errorf("line %q of %q", line, text)
			}
		}
	})
}

// FuzzHead: the look at raw heads sees the same however the bytes are cut.
func FuzzHead(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"), 3)
	f.Add([]byte("POST / HTTP/1.1\nHost: x\r\n\r\n"), 1)
	f.Add([]byte("\r\nGET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"), 7)
	f.Add([]byte("G\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"), 5)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		var whole, parts head
		whole.arm()
		parts.arm()
		want := whole.look(text)
		var got error
		for step := max(1, cut%64); len(text) > 0 && got == nil; {
			n := min(step, len(text))
			got, text = parts.look(text[:n]), text[n:]
		}
		if got != want || parts.armed.Load() != whole.armed.Load() {
			t.Errorf("in parts %v, whole %v", got, want)
		}
		if cap(whole.line) > 2*maxLine {
			t.Errorf("%d bytes of a line are kept", cap(whole.line))
		}
	})
}
