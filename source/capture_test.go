package source

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"creel/config"
)

func TestReadCapture(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"CRLF":           "POST /in/shop?a=1&b HTTP/1.1\r\nHost: x\r\nx-signature:  abc \r\nX-Signature: d\r\n\r\n{\"id\":1}\n",
		"LF":             "POST /in/shop?a=1&b HTTP/1.1\nHost: x\nX-Signature: abc\nx-signature: d\n\n{\"id\":1}\n",
		"an absolute":    "POST https://x/in/shop?a=1&b HTTP/1.0\nHost: x\nX-Signature: abc\nX-Signature: d\n\n{\"id\":1}\n",
		"a chunked body": "POST /in/shop?a=1&b HTTP/1.1\r\nHost: x\r\nX-Signature: abc\r\nX-Signature: d\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n4\r\n:1}\n\r\n0\r\n\r\n",
	} {
		c, err := ReadCapture([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := Request{Method: "POST", Query: "a=1&b", Header: http.Header{"Host": {"x"}, "X-Signature": {"abc", "d"}}, Body: []byte("{\"id\":1}\n")}
		if !reflect.DeepEqual(c.Request, want) || c.Path != "/in/shop" || len(c.Notes) > 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for text, want := range map[string]error{
		"":                           ErrNoRequestLine,
		"\n":                         ErrNoRequestLine,
		"Host: x\n\n{}":              ErrNoRequestLine,
		"> POST /in/x HTTP/1.1\n\n":  ErrNoRequestLine,
		"POST in/x HTTP/1.1\n\n":     ErrNoRequestLine,
		"POST / HTTP/1.1\nHost: x\n": ErrNoBlankLine,
		"POST / HTTP/1.1\n{}\n\n":    ErrNoHeader,
		"POST / HTTP/1.1\n a: b\n\n": ErrNoHeader,
	} {
		if _, err := ReadCapture([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	c, err := ReadCapture([]byte("POST / HTTP/2\nTransfer-Encoding: chunked\n\n{}"))
	if err != nil || string(c.Body) != "{}" || len(c.Notes) != 2 {
		t.Errorf("notes: %+v, %v", c, err)
	}
}

// FuzzCapture: what was read is written so that it reads the same, whatever
// it was.
func FuzzCapture(f *testing.F) {
	f.Add([]byte("POST /in/shop?a=1 HTTP/1.1\r\nHost: x\r\n\r\n{}"))
	f.Add([]byte("POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n2\r\n{}\r\n0\r\n\r\n"))
	f.Add([]byte("GET http:// x\n: \n\n"))
	f.Add([]byte(`{"url":"https://x/in/shop?a=1","headers":{"Host":["x"]},"body_base64":"e30="}`))
	f.Add([]byte(`[{"request":{"method":"GET","headers":[{"name":"a","value":"b"}],"postData":{"text":"{}"}}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ReadCapture(data)
		if err != nil {
			return
		}
		again, err := ReadCapture(WriteCapture(&c.Request, c.Path))
		if err != nil || !reflect.DeepEqual(again.Request, c.Request) || again.Path != c.Path {
			t.Errorf("%q became %q, %v", c, again, err)
		}
	})
}

// Nothing that carries or is a secret is shown of a request.
func TestConceal(t *testing.T) {
	t.Parallel()
	src := plainSource(t, diagnosedSecret, "")
	written := base64.StdEncoding.EncodeToString([]byte(diagnosedSecret))
	req := &Request{Method: "POST", Query: "a=1&token=abc&key=k3y&Pwd=k3y&b=" + strings.ReplaceAll(diagnosedSecret, " ", "+") + "&c", Header: http.Header{
		"X-Signature": {"0123abcd"}, "X-Api-Key": {"0123abcd"}, "X-Access-Key": {"0123abcd"}, "Idempotency-Key": {"idem"}, "Authorization": {"Bearer 0123abcd"}, "Cookie": {"0123abcd"},
		"X-Other": {"x " + diagnosedSecret, written}, "Content-Type": {"application/json"},
	}, Body: []byte(`{"id":"e1","s":"` + diagnosedSecret + `"}`)}
	before := fmt.Sprint(req)
	shown := src.Conceal(req)
	text := fmt.Sprint(shown.Header, shown.Query, string(shown.Body))
	for _, hidden := range []string{"0123abcd", diagnosedSecret, "a+secret", strings.TrimRight(written, "="), "token=abc", "k3y"} {
		if strings.Contains(text, hidden) {
			t.Errorf("%q stands in %s", hidden, text)
		}
	}
	for _, seen := range []string{"application/json", "idem", "a=1", "&c", `"id":"e1"`} {
		if !strings.Contains(text, seen) {
			t.Errorf("%q does not stand in %s", seen, text)
		}
	}
	if fmt.Sprint(req) != before {
		t.Error("the request itself was changed")
	}
	var gone *Source
	if text := fmt.Sprint(gone.Conceal(req)); strings.Contains(text, "Bearer 0123") || !strings.Contains(text, "application/json") {
		t.Errorf("of a source that is gone: %s", text)
	}
	token := mustCompile(t, config.Source{Name: "lab", Verify: testScheme(t, "gitlab"), Secrets: []config.Secret{config.NewSecret(diagnosedSecret)}})
	shown = token.Conceal(&Request{Header: http.Header{"X-Gitlab-Token": {"abc"}, "X-Gitlab-Event": {"Push"}}, Body: nil})
	if shown.Header.Get("X-Gitlab-Token") == "abc" || shown.Header.Get("X-Gitlab-Event") != "Push" {
		t.Errorf("of a token: %v", shown.Header)
	}
	if !bytes.Equal(shown.Body, nil) {
		t.Errorf("an empty body became %q", shown.Body)
	}
}
