package store

import (
	"fmt"
	"testing"

	"creel/event"
)

// behind says of each dead letter which lane it holds up, and how many there.
func (sc *scene) behind(most int) string {
	sc.t.Helper()
	found, err := sc.DeadLetters(sc.t.Context(), event.Selector{}, "", 0)
	must(sc.t, err)
	said := ""
	for i := range found.Letters {
		lane, n, err := sc.Behind(sc.t.Context(), &found.Letters[i], most)
		must(sc.t, err)
		said += fmt.Sprintf("%s: %s %d; ", found.Letters[i].Event.Key.ID, lane, n)
	}
	return said
}

// A dead event says how many wait behind it in its lane, and only while they do.
func TestADeadEventSaysHowManyItHoldsUp(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.line("x", "A", "B", "C", "D")
	sc.line("y", "E")
	sc.receive("F")
	for _, w := range sc.claim(10) {
		must(t, sc.finish(dead(w)).Err)
	}
	want(t, "behind", sc.behind(100), "F:  0; E: y 0; A: x 3; ")
	want(t, "as far as two", sc.behind(2), "F:  0; E: y 0; A: x 2; ")
	sc.actLane(event.ActionLaneSkip, "A")
	want(t, "skipped", sc.behind(100), "F:  0; E: y 0; A:  0; ")
}

// So does a dead delivery, in its lane at its destination.
func TestADeadDeliverySaysHowManyItHoldsUp(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.sendInLane("x", "A", "B", "C")
	sc.sendInLane("y", "D")
	sc.sendInLane("", "E")
	for _, s := range sc.send(10) {
		errs, _ := sc.ship([]event.DeliveryFinish{outcome(s, event.DeliveryDead)})
		must(t, errs[0])
	}
	want(t, "behind", sc.behind(100), "E:  0; D: y 0; A: x 2; ")
	sc.actLane(event.ActionLaneSkip, "A")
	want(t, "skipped", sc.behind(100), "E:  0; D: y 0; A:  0; ")
}
