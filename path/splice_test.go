package path

import (
	"bytes"
	"errors"
	"testing"

	"creel/event"
)

func TestSpliceKeepsEveryOtherByte(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, place, want string
		err               error
	}{
		{`{"a":1,"b":2}`, "body", `NEW`, nil},
		{`not json`, "body", `NEW`, nil},
		{` { "a" : 1 , "b":2}`, "body.a", ` { "a" : NEW , "b":2}`, nil},
		{`{"x":{"a":[1, {"b": "c"} ]}}`, "body.x.a.1.b", `{"x":{"a":[1, {"b": NEW} ]}}`, nil},
		{`{"x":{"a":[1, {"b":"c"} ]}}`, "body.x.a", `{"x":{"a":NEW}}`, nil},
		{`{"\u0061":null}`, "body.a", `{"\u0061":NEW}`, nil},
		{"\xef\xbb\xbf" + `{"a":1}`, "body.a", `{"a":NEW}`, nil},
		{`[1,2]`, "body.1", `[1,NEW]`, nil},
		{`{"a":1}`, "body.b", "", ErrMissing},
		{`{"a":1,"a":2}`, "body.a", "", ErrDuplicateMember},
		{`{"a":1`, "body.a", "", ErrUnparsable},
		{`{"a":1}`, "header.a", "", ErrBadPath},
	} {
		p, err := Parse(c.place)
		if err != nil {
			t.Fatal(err)
		}
		got, err := NewDocument(event.Payload{Body: []byte(c.body)}).Splice(p, []byte("NEW"))
		if string(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s at %s: %s, %v", c.body, c.place, got, err)
		}
	}
}

func FuzzSplice(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,2]},"c":3}`), "body.a.b.1")
	f.Add([]byte(`{"a":{"b":[1,2]},"c":3}`), "body.c")
	f.Fuzz(func(t *testing.T, body []byte, place string) {
		p, err := Parse(place)
		if err != nil {
			return
		}
		before := NewDocument(event.Payload{Body: body})
		value, found, err := before.Get(p)
		const with = `{"spliced":true}`
		out, spliceErr := before.Splice(p, []byte(with))
		if err != nil || !found || p.Root() != Body || len(p.steps) == 0 {
			return
		}
		if spliceErr != nil {
			t.Fatalf("%q at %s: %v", body, place, spliceErr)
		}
		after := NewDocument(event.Payload{Body: out})
		if got, ok, err := after.Get(p); err != nil || !ok || string(got.Raw) != with {
			t.Fatalf("%q at %s became %q: %s %t %v", body, place, out, got.Raw, ok, err)
		}
		back, err := after.Splice(p, value.Raw)
		if original, _ := before.Body(); err != nil || !bytes.Equal(back, original) {
			t.Fatalf("%q at %s came back as %q: %v", body, place, back, err)
		}
	})
}
