package handlers

import (
	"fmt"
	"strings"
	"testing"

	"creel/config"
)

// What an expression puts together is charged, whichever way it does so.
func TestTextsThatGrowAreBounded(t *testing.T) {
	t.Parallel()
	var doubled strings.Builder
	doubled.WriteString("let a0 = body.t + body.t; ")
	for i := range 20 {
		fmt.Fprintf(&doubled, "let a%d = a%d + a%d; ", i+1, i, i)
	}
	text := `{"t":"` + strings.Repeat("x", 100_000) + `","list":[` + strings.Repeat("1,", 999) + `1]}`
	lists := `{"all":[` + strings.Repeat("1,", 9_999) + `1],"list":[` + strings.Repeat("1,", 999) + `1]}`
	for when, body := range map[string]string{
		doubled.String() + "len(a20) > 0":                      `{"t":"` + strings.Repeat("x", 100) + `"}`,
		`len(filter(body.list, len(body.t + body.t) > 0)) > 0`: text,
		`len(filter(body.list, len("x" + body.t) > 0)) > 0`:    text,
		`len(map(body.list, body.all)) > 0`:                    lists,
	} {
		if _, err := evaluate(t, when, body); err == nil || !strings.Contains(err.Error(), "memory budget") {
			t.Errorf("%.60s: %v", when, err)
		}
	}
}

// What can be no yes or no, whatever the event, is refused when it is loaded.
func TestASumIsNoCondition(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"1 + 1", "2 * 3", "1.5 - 1.5", `"a" + "b"`, "1 + 1 * 2"} {
		told(t, problemsOf(config.Rule{When: when, Forward: forward("app")}), "rule[0].when", "is no condition")
	}
	if problems := problemsOf(config.Rule{When: "body.a + body.b > 1 + 1", Forward: forward("app")}); problems.Err() != nil {
		t.Errorf("a sum beside a comparison: %v", problems)
	}
}
