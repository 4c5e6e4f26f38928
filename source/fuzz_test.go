package source

import (
	"net/http"
	"strings"
	"testing"

	"creel/config"
	"creel/event"
)

// FuzzSignatureHeader: whatever stands in the header, reading it ends, and
// what it yields is bounded.
func FuzzSignatureHeader(f *testing.F) {
	for _, seed := range []string{"", "sha256=", "t=1,v1=aa,v1=", "v1,AAAA v1a,BBBB v1,", ",,,", "t=1,t=2", "Basic eDp5", strings.Repeat("v1=aa,", 99)} {
		f.Add(seed)
	}
	specs := []signatures{
		{list: ",", pair: "=", take: "v1", enc: encHex},
		{list: " ", pair: ",", take: "v1", enc: encBase64},
		{pair: "=", take: "sha256", bare: true, enc: encBase64},
		{pair: " ", take: "Basic", fold: true, enc: encText},
		{enc: encURL},
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, spec := range specs {
			spec.places = []place{{kind: inHeader, name: "X-Sig", text: "header.x-sig"}}
			v := &view{req: &Request{Header: http.Header{"X-Sig": {text}}}}
			found, why := spec.read(v)
			if len(found) > maxCandidates || len(v.labels) > maxElements || (why == nil) != (len(found) > 0) {
				t.Fatalf("%d candidates, %d labels, %v", len(found), len(v.labels), why)
			}
			for _, one := range found {
				if again := spec.enc.encode(one.raw); spec.enc != encHex && again != one.text {
					t.Fatalf("%q is read as %q", one.text, again)
				}
			}
		}
	})
}

func FuzzTimestamp(f *testing.F) {
	for _, seed := range []string{"", "1700000000", "-1", "2023-11-14T22:13:20Z", "2023-11-14T22:13:20.5+01:00", "999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, u := range []unit{seconds, milliseconds, rfc3339} {
			w := window{unit: u, late: defaultWindow, early: defaultWindow}
			at, ok := w.parse(text)
			if !ok {
				continue
			}
			distance := at.Sub(bugNow).Abs()
			if inside := w.check(at, bugNow) == nil; inside != (distance <= defaultWindow) {
				t.Fatalf("%s %q: inside %v at %v", u, text, inside, distance)
			}
		}
	})
}

// FuzzReceive: an unsigned request never becomes an event, and a signed one
// always comes to something that is kept.
func FuzzReceive(f *testing.F) {
	f.Add("stripe", []byte(`{"id":"evt_1","type":"x"}`), "application/json", "a=1", "t=1700000000,v1=00")
	f.Add("github", []byte("payload=%7B%7D"), "application/x-www-form-urlencoded", "", "sha256=00")
	f.Add("slack", []byte(`{"type":"url_verification","challenge":"x"}`), "", "", "v0=00")
	f.Add("gen", []byte(`[{"id":1},{"id":1}]`), "", "", "sha256=zz")
	f.Add("gen", []byte("\xef\xbb\xbf{\"id\":\"\\ud800\"}"), "", "", "")
	sources := map[string]*Source{"gen": splitting(f), "stripe": stripe(f, nil, "whsec_test_new"), "github": gh(f),
		"slack": mustCompile(f, config.Source{Name: "slack", Provider: "slack", Secrets: []config.Secret{config.NewSecret("slack-test-secret")}})}
	f.Fuzz(func(t *testing.T, name string, body []byte, kind, query, sig string) {
		s, ok := sources[name]
		if !ok {
			return
		}
		header := http.Header{"Content-Type": {kind}}
		header[s.scheme.sig.places[0].name] = []string{sig}
		if r := s.Receive(&Request{Method: "POST", Query: query, Header: header, Body: body}, bugNow); !r.Refused() {
			t.Fatalf("%q was taken", sig)
		}
		req, err := s.Sign(Draft{ID: "d", Query: query, Header: http.Header{"Content-Type": {kind}}, Body: body}, Signing{At: bugNow})
		if err != nil {
			t.Fatal(err)
		}
		r := s.Receive(req, bugNow)
		if r.Refused() {
			t.Fatalf("a signed request: %s %s", r.Cause, r.Detail)
		}
		for _, item := range r.Items {
			if item.Key.Source == "" || item.Key.ID == "" || len(item.Key.ID) > event.MaxKey || (item.State == event.Dead) != (item.Error != "") {
				t.Fatalf("%+v", item)
			}
		}
	})
}
