package store

import "testing"

// A unit that has to be alone comes alone, in its turn, and one for each batch:
// intake that comes meanwhile goes before the next one.
func TestUnitsThatHaveToBeAlone(t *testing.T) {
	t.Parallel()
	q := newQueue(10)
	a, b, c := &unit{rows: 1}, &unit{rows: 1}, &unit{rows: 1}
	first, second := &unit{lone: true}, &unit{lone: true}
	for _, u := range []*unit{a, first, second, b} {
		must(t, q.put(work, u))
	}
	must(t, q.put(intake, c))
	for i, turn := range []struct {
		batch []*unit
		lone  *unit
	}{{[]*unit{c, a}, first}, {nil, second}, {[]*unit{b}, nil}, {nil, nil}} {
		batch, _, lone, _ := q.take(nil, 100)
		if len(batch) != len(turn.batch) || lone != turn.lone {
			t.Fatalf("turn %d: %d units and alone %t", i, len(batch), lone != nil)
		}
		for k := range batch {
			if batch[k] != turn.batch[k] {
				t.Errorf("turn %d: another unit at %d", i, k)
			}
		}
	}
}
