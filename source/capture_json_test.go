package source

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func TestReadCaptureOfJSON(t *testing.T) {
	t.Parallel()
	const har = `{"method":"POST","url":"https://hooks.example.com/in/shop?a=1&b","httpVersion":"HTTP/2",` +
		`"headers":[{"name":":authority","value":"hooks.example.com"},{"name":"host","value":"x"},{"name":"x-signature","value":"abc"},{"name":"X-Signature","value":"d"}],` +
		`"queryString":[],"postData":{"mimeType":"application/json","text":"{\"id\":1}\n"}}`
	for name, text := range map[string]string{
		"an object":            `{"method":"post","url":"https://hooks.example.com/in/shop?a=1&b","headers":{"host":"x","x-signature":["abc","d"]},"body":"{\"id\":1}\n"}`,
		"base64":               "\ufeff\n{\"path\":\"/in/shop?a=1&b\",\"headers\":{\"Host\":\"x\",\"X-Signature\":[\" abc \",\"d\"]},\"body_base64\":\"eyJpZCI6MX0K\"}\n",
		"base64 that is told":  `{"url":"/in/shop?a=1&b","headers":{"Host":"x","X-Signature":["abc","d"]},"body":"eyJpZCI6MX0K","isBase64Encoded":true}`,
		"a request of HAR":     har,
		"an entry of HAR":      `{"startedDateTime":"2026-01-01T00:00:00Z","request":` + har + `,"response":{"status":200}}`,
		"a HAR file":           `{"log":{"version":"1.2","entries":[{"request":` + har + `}]}}`,
		"a HAR file in base64": `{"log":{"entries":[{"request":` + strings.Replace(har, `"text":"{\"id\":1}\n"`, `"text":"eyJpZCI6MX0K","encoding":"base64"`, 1) + `}]}}`,
		"a list of one":        `[` + har + `]`,
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
		`{}`:                                     ErrNoCapture,
		`[]`:                                     ErrNoCapture,
		`[7]`:                                    ErrNoCapture,
		`{"id":"evt_1","type":"x"}`:              ErrNoCapture,
		`{"body":"x"`:                            ErrNoCapture,
		`{"body":"x","url":"in/shop"}`:           ErrNoCapture,
		`{"body":"x","url":"/in/shop\nHost: y"}`: ErrNoCapture,
		`{"body":"x","method":"P OST"}`:          ErrNoCapture,
		`{"body":"x","body_base64":"eA=="}`:      ErrNoCapture,
		`{"body_base64":"%"}`:                    ErrNoCapture,
		`{"body":"x","headers":"Host: x"}`:       ErrNoCapture,
		`{"body":"x","headers":{"A":"b\r\nC: d"}}`:                                 ErrNoHeader,
		`{"body":"x","headers":{"a b":"c"}}`:                                       ErrNoHeader,
		`{"body":"x","headers":{"a":{}}}`:                                          ErrNoHeader,
		`{"body":"x"}{"body":"y"}`:                                                 ErrManyCapture,
		`{"log":{"entries":[]}}`:                                                   ErrNoCapture,
		strings.Repeat("[", 40) + strings.Repeat("]", 40):                          ErrNoCapture,
		strings.Repeat(`{"request":`, 9) + `{"body":"x"}` + strings.Repeat("}", 9): ErrNoCapture,
	} {
		if _, err := ReadCapture([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	// What may not be the bytes that came is said.
	for text, body := range map[string]string{`{"body": { "id": 1 } }`: `{ "id": 1 }`, `{"body":"\ud800"}`: "\ufffd"} {
		if c, err := ReadCapture([]byte(text)); err != nil || string(c.Body) != body || len(c.Notes) != 1 {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	all, err := ReadCaptures([]byte(`{"body":"x"}` + "\n" + `[{"body":"y"},` + har + `]`))
	if err != nil || len(all) != 3 || string(all[1].Body) != "y" || all[2].Path != "/in/shop" {
		t.Errorf("%v: %v", err, all)
	}
}
