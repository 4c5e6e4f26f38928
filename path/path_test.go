package path

import (
	"errors"
	"strings"
	"testing"
)

func TestParseRefusesWhatIsNoPath(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "?", "x", "body.", "body..a", "body.a.", ".body", "Body.a", "header", "header.", "query", "form.", "bodyx", "json:/id",
		"body" + strings.Repeat(".a", maxSteps+1),
	} {
		if p, err := Parse(text); !errors.Is(err, ErrBadPath) {
			t.Errorf("%q parsed as %v, %v", text, p, err)
		}
	}
}

func TestParseReadsEscapesAndTheQuestionMark(t *testing.T) {
	t.Parallel()
	p := parsed(t, `body.a\.b.c\?`)
	if p.Optional() || len(p.steps) != 2 || p.steps[0].name != "a.b" || p.steps[1].name != "c?" {
		t.Errorf("parsed %+v", p)
	}
	p = parsed(t, `body.a?`)
	if !p.Optional() || p.steps[0].name != "a" || p.String() != "body.a?" {
		t.Errorf("parsed %+v", p)
	}
	if p := parsed(t, "query.hub.mode"); p.Name() != "hub.mode" || p.Root() != Query {
		t.Errorf("parsed %+v", p)
	}
	joined, err := Join("a.b", "c?", "0", `d\`, "{e}", "*|")
	if err != nil || joined.steps[0].name != "a.b" || joined.steps[1].name != "c?" || joined.steps[2].index != 0 ||
		joined.steps[3].name != `d\` || joined.steps[4].name != "{e}" || joined.steps[5].name != "*|" {
		t.Errorf("joined %+v, %v", joined, err)
	}
}

func TestStepsArePlainNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"body": "", "body.a.0.b": "a|0|b", `body.a\.b.c?`: "a.b|c", "header.x-foo": ""} {
		p, err := Parse(text)
		if got := strings.Join(p.Steps(), "|"); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}
