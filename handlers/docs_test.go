package handlers

import (
	"os"
	"strings"
	"testing"

	"creel/event"
	"creel/path"
)

// The conditions of docs/rules.md compile and hold as they say.
func TestTheConditionsOfTheDocumentationHold(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Functions() {
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/rules.md does not name the function %s", name)
		}
	}
	_, block, _ := strings.Cut(string(page), "```\n(body?.order")
	block, _, _ = strings.Cut("(body?.order"+block, "```")
	bodies := []string{
		`{"order":{"total":150,"paid":true},"livemode":true,"items":[{"sku":"A1"}]}`,
		`{"livemode":false,"items":[]}`,
	}
	for line := range strings.Lines(block) {
		text, _, _ := strings.Cut(strings.TrimRight(line, "\n"), "  ")
		condition, problem := compileCondition(text)
		if problem != nil {
			t.Errorf("%s: %s", text, problem.Message)
			continue
		}
		for i, body := range bodies {
			work := event.Work{Event: event.Event{Key: event.Key{Source: "s", ID: "1"}, Type: []string{"invoice.paid", "other"}[i]},
				Payload: event.Payload{Body: []byte(body), Header: []string{"X-Kind: b2b\n", "X-Kind: b2c\n"}[i]}}
			s := &subject{work: work, doc: path.NewDocument(work.Payload)}
			held, err := condition.holds(t.Context(), s)
			if err != nil || held != (i == 0) {
				t.Errorf("%s on body %d: %t, %v", text, i, held, err)
			}
		}
	}
}
