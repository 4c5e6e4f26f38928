package cli

import (
	"fmt"

	"creel/admin"
)

func (f *frame) printEffects(effects []admin.EffectLine) {
	if len(effects) == 0 {
		return
	}
	fmt.Fprintln(f.out)
	rows := newTable(f.out, "EFFECT", "RULE", "WHAT", "KEY")
	for _, e := range effects {
		what := e.Kind
		switch {
		case e.Balance != nil:
			what = fmt.Sprintf("%+d %s to %s, balance %d", e.Amount, e.Unit, e.Holder, *e.Balance)
		case e.Object != "":
			what = fmt.Sprintf("%s: %s → %s", e.Object, e.From, e.State)
		}
		rows.row(e.Effect, e.Rule, what, e.Key)
	}
	rows.flush()
}
