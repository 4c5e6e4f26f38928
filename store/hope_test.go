package store

import (
	"errors"
	"fmt"
	"testing"

	"creel/event"
)

// A batch runs without a savepoint around each finish until one of them has
// something to take back: then all of it runs again, and the others lose
// nothing. The refused one leaves none of its effects.
func TestObjectionsInABatch(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{true, false} {
		sc := newScene(t)
		for round := range 2 {
			ids := []string{"a", "b", "c"}
			for _, id := range ids {
				sc.receive(fmt.Sprint(id, round))
			}
			works := sc.claim(3)
			finishes := make([]event.Finish, len(works))
			for i, w := range works {
				key := fmt.Sprint("invoice/", round, "114"[i]) // the second asks for another amount under the key of the first
				finishes[i] = done(w, event.Record{Rule: "r", Key: w.Key.String() + "/r", Of: "order"},
					event.Grant{Rule: "r", Key: key, To: "c", Unit: "credits", Amount: int64(100 + i)})
			}
			var finished []event.Finished
			if together {
				finished, _ = sc.settle(0, finishes...)
			} else {
				for _, f := range finishes {
					finished = append(finished, sc.finish(f))
				}
			}
			for i, got := range finished {
				if refused := errors.Is(got.Err, event.ErrMismatch); refused != (i == 1) {
					t.Errorf("together %v, round %d: finish %d: %v", together, round, i, got.Err)
				}
			}
			if got, want := sc.rows("SELECT count(*) FROM record UNION ALL SELECT count(*) FROM ledger"), fmt.Sprintf("[%d]\n[%[1]d]\n", 2*round+2); got != want {
				t.Errorf("together %v, round %d: records and grants %q, want %q", together, round, got, want)
			}
		}
	}
}
