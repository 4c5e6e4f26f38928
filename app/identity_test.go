package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
)

// An alert is a delivery of no rule: check does not miss the rule "".
func TestCheckMissesNoRuleOfAnAlert(t *testing.T) {
	t.Parallel()
	p := newPremises(t, `silence = "0s"`)
	p.app.Script(testkit.Answer{Status: 422})
	p.receive("order.paid", 1)
	p.pass(time.Hour, false)
	if told := p.told(); len(told) == 0 {
		t.Fatal("nobody was told of the dead letter")
	}
	for _, problem := range Compare(context.Background(), p.snapshot.Load()) {
		if strings.Contains(problem.Message, "the rule") {
			t.Errorf("%s: %s", problem.Path, problem.Message)
		}
	}
}
