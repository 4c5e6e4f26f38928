package store

import (
	"strings"
	"testing"

	"creel/event"
)

// What waits in memory is bounded in bytes too: a large body waits in the file.
func TestALargeBodyIsNotHandedOver(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	hand := &memory{places: 4}
	sc.SetHandoff(hand)
	large := `"` + strings.Repeat("x", maxHanded) + `"`
	sc.accept(sc.receipt(large, item("large", large)))
	sc.accept(sc.receipt(`{}`, item("small", `{}`)))
	want(t, "large", sc.detail("large").State, event.Pending)
	want(t, "small", sc.detail("small").State, event.Claimed)
	want(t, "places", hand.free(), 3)
	works := sc.claim(8)
	want(t, "claimed", len(works), 1)
	want(t, "body", string(works[0].Body), large)
}
