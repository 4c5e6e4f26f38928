package path

import (
	"errors"
	"testing"

	"creel/event"
)

func render(t *testing.T, text, body string, key bool) (string, error) {
	t.Helper()
	tpl, err := ParseTemplate(text, append(EventNames(), "ts")...)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDocument(event.Payload{Body: []byte(body), Header: "X-Foo: bar\n"})
	names := func(name string) (string, bool) {
		value, ok := map[string]string{"source": "stripe", "account": "", "ts": "17", "id": "a/b%"}[name]
		return value, ok
	}
	if key {
		return tpl.ExecuteKey(d, names)
	}
	return tpl.Execute(d, names)
}

func TestTemplateRendersPlacesAndNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, body, want string }{
		{"", "{}", ""},
		{"plain", "{}", "plain"},
		{"{source}/{account}/{body.id}", `{"id":9007199254740993}`, "stripe//9007199254740993"},
		{"{header.x-foo}{ts}", `{}`, "bar17"},
		{"{{{body.a}}} {{}}", `{"a":"x"}`, "{x} {}"},
		{"[{body.none?}{version?}{body.null?}]", `{"null":null}`, "[]"},
		{`{body.a\.b}{body.c\}d}`, `{"a.b":1,"c}d":2}`, "12"},
		{"{body.o}", `{"o":{"a": [1]}}`, `{"a": [1]}`},
	} {
		if got, err := render(t, c.text, c.body, false); err != nil || got != c.want {
			t.Errorf("%q of %s = %q, %v; want %q", c.text, c.body, got, err, c.want)
		}
	}
}

func TestBugS28BracesInAPayloadStayLiteral(t *testing.T) {
	t.Parallel()
	body := `{"evil":"{{body.secret}} {source} }}","secret":"hidden"}`
	if got, err := render(t, "<{body.evil}>", body, false); err != nil || got != "<{{body.secret}} {source} }}>" {
		t.Errorf("rendered %q, %v", got, err)
	}
}

func TestKeyTemplateKeepsPartsApart(t *testing.T) {
	t.Parallel()
	one, err1 := render(t, "{body.x}/{body.y}", `{"x":"a/b","y":"c"}`, true)
	two, err2 := render(t, "{body.x}/{body.y}", `{"x":"a","y":"b/c"}`, true)
	if err1 != nil || err2 != nil || one == two || one != "a%2Fb/c" {
		t.Errorf("%q, %v and %q, %v", one, err1, two, err2)
	}
}

func TestKeyTemplateTakesNoEmptyText(t *testing.T) {
	t.Parallel()
	if got, err := render(t, "x/{body.id}", `{"id":""}`, true); !errors.Is(err, ErrMissing) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := render(t, "x/{body.id?}{account}", `{"id":""}`, true); err != nil || got != "x/" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTemplateNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for text, place := range map[string]string{
		"{body.a.b}": "body.a.b", "{version}": "version", "{header.x-none}": "header.x-none", "{body.null}": "body.null",
	} {
		_, err := render(t, text, `{"null":null}`, false)
		var placed *PlaceError
		if !errors.Is(err, ErrMissing) || !errors.As(err, &placed) || placed.Place != place {
			t.Errorf("%s: %v, want nothing at %s", text, err, place)
		}
	}
}

func TestParseTemplateRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{", "}", "{source", "a } b", "{}", "{nobody}", "{body..x}", "{header}", "{query.}", "{body.x", "{sourc}", "{a b}"} {
		if tpl, err := ParseTemplate(text, EventNames()...); err == nil {
			t.Errorf("%q parsed: %v", text, tpl.Pieces())
		}
	}
}
