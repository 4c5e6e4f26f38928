package path

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"creel/event"
)

// FuzzPathParse is part of gate F7: a path that parses prints as something
// that parses alike.
func FuzzPathParse(f *testing.F) {
	for _, seed := range []string{"body.a.0.c", `body.a\.b?`, `body.x\?`, "header.x-foo", "query.hub.mode", "form.x?", `body.\`, "body..a", "body.*|{}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err != nil || again.String() != p.String() || len(again.steps) != len(p.steps) || again.name != p.name {
			t.Fatalf("%q: %+v, then %+v, %v", text, p, again, err)
		}
		var names []string
		for _, s := range p.steps {
			names = append(names, s.name)
		}
		if p.root == Body {
			joined, err := Join(names...)
			if err != nil {
				return // a backslash at the end escapes nothing: an empty name
			}
			for i, s := range joined.steps {
				if s != p.steps[i] {
					t.Fatalf("%q: %+v joined as %+v", text, p, joined)
				}
			}
		}
	})
}

// FuzzDocument is part of gate F7: what is valid, and what stands at a place,
// is what encoding/json says, but for the cap on depth, doubled members and
// texts that are not Unicode.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		`{"id":9007199254740993}`, `[{"a":{"b":[1,"x",null,true]}}]`, `{"a":1,"a":2}`, `{"\u0061":"\ud83d\ude00\ud800"}`,
		"\xef\xbb\xbf{}", `{"a":-0.1e+9,"b":[]}`, "{\"a\":\"\xff\"}", `{"a":{"b":{}},"b":1e999}`, strings.Repeat("[", 600), `{"a":"01234567\"","b":"\\"}`,
	} {
		f.Add([]byte(seed), "a.b.0")
	}
	f.Fuzz(func(t *testing.T, body []byte, below string) {
		d := NewDocument(event.Payload{Body: body})
		plain := bytes.TrimPrefix(body, byteOrderMark)
		err := d.Check()
		if errors.Is(err, ErrTooDeep) {
			return
		}
		if (err == nil) != json.Valid(plain) {
			t.Fatalf("check says %v, encoding/json says valid %v", err, json.Valid(plain))
		}
		decoded, decodeErr := d.Decode()
		p, parseErr := Parse("body." + below)
		if parseErr != nil {
			return
		}
		value, ok, err := NewDocument(event.Payload{Body: body}).Get(p)
		if err != nil || decodeErr != nil {
			return // broken, or with a doubled member somewhere
		}
		want, wantOK := walk(reference(t, plain), p.steps)
		got, gotOK := walk(decoded, p.steps)
		if ok != wantOK || gotOK != ok {
			t.Fatalf("%s: found %v, decoded %v, encoding/json %v", p, ok, gotOK, wantOK)
		}
		if !ok || !utf8.Valid(body) || bytes.Contains(body, []byte(`\u`)) {
			return
		}
		compare(t, value, got, want)
	})
}

func reference(t *testing.T, body []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var out any
	if err := decoder.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func walk(value any, steps []step) (any, bool) {
	for _, s := range steps {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[s.name]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			if s.index < 0 || s.index >= len(v) {
				return nil, false
			}
			value = v[s.index]
		default:
			return nil, false
		}
	}
	return value, true
}

func compare(t *testing.T, value Value, decoded, want any) {
	switch w := want.(type) {
	case string:
		if value.Kind != String || value.Text() != w || decoded != w {
			t.Fatalf("text %q, decoded %q, want %q", value.Text(), decoded, w)
		}
	case json.Number:
		if value.Kind != Number || value.Text() != string(w) {
			t.Fatalf("number %q, want %q", value.Text(), w)
		}
	case bool:
		if value.Kind != Bool || decoded != w {
			t.Fatalf("bool %q, want %v", value.Raw, w)
		}
	case nil:
		if value.Kind != Null || decoded != nil {
			t.Fatalf("%q, want null", value.Raw)
		}
	default:
		if !json.Valid(value.Raw) {
			t.Fatalf("%q is no JSON", value.Raw)
		}
	}
}

// FuzzForm is part of gate F7: a form that net/url takes whole reads as
// net/url reads it.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{"payload=%7B%7D&zen=a%2Bb+c", "a&a=1", "=x&&y=%", "\xef\xbb\xbfid=f-1", "a;b=1", "%zz=1"} {
		f.Add(seed, "id")
	}
	f.Fuzz(func(t *testing.T, body, name string) {
		d := NewDocument(event.Payload{Body: []byte(body)})
		p := Path{text: "form.x", root: Form, name: name}
		value, ok, err := d.Get(p)
		want, parseErr := url.ParseQuery(strings.TrimPrefix(body, string(byteOrderMark)))
		if parseErr != nil {
			return
		}
		switch texts := want[name]; {
		case len(texts) > 1:
			if !errors.Is(err, ErrDuplicateMember) {
				t.Fatalf("%d fields: %v", len(texts), err)
			}
		case ok != (len(texts) == 1) || (ok && value.Text() != texts[0]):
			t.Fatalf("%q, %v, %v; want %q", value.Text(), ok, err, texts)
		}
	})
}

// FuzzTemplate is part of gate F7: parsing never panics, and what an event
// says is never read as a template.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"{source}/{body.a}", "{{{body.a?}}}", "}", "{", `{body.a\}b}`, "{id?}"} {
		f.Add(seed, "{source}")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		tpl, err := ParseTemplate(text, EventNames()...)
		if err != nil {
			return
		}
		d := NewDocument(event.Payload{Body: []byte(`{"a":1}`)})
		names := func(string) (string, bool) { return value, true }
		got, err := tpl.Execute(d, names)
		if err != nil {
			return
		}
		want := ""
		for _, piece := range tpl.Pieces() {
			text, _, _ := piece.Text(d, names)
			want += text
		}
		if got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

// FuzzSplit is part of gate F7: every part that a split names reads as its
// element.
func FuzzSplit(f *testing.F) {
	f.Add([]byte(`{"entry":[{"changes":[1,2]},{"changes":[3]}]}`), "body.entry.*.changes.*")
	f.Add([]byte(`[[1],{"a.b":2}]`), "body")
	f.Add([]byte(`{"a":[{"b|c":[1]}]}`), `body.a.0.b\|c`)
	f.Fuzz(func(t *testing.T, body []byte, text string) {
		split, err := ParseSplit(text)
		if err != nil {
			return
		}
		elements, _, err := NewDocument(event.Payload{Body: body}).Each(split)
		if err != nil {
			return
		}
		for _, e := range elements[:min(len(elements), 20)] {
			part, err := NewDocument(event.Payload{Body: body, Part: e.Part}).Body()
			if err != nil || !bytes.Equal(part, e.Raw) {
				t.Fatalf("part %q reads %q, %v; want %q", e.Part, part, err, e.Raw)
			}
		}
	})
}
