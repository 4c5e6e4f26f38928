package path

import (
	"strings"
	"testing"
)

func TestARootThatIsNearlyRight(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"headers.X-Sum": "did you mean header?", "bodies.id": "did you mean body?", "Body.id": "did you mean body?",
		"queries.a": "did you mean query?", "forms.a": "did you mean form?",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Parse("payload.id"); err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("%v", err)
	}
}
