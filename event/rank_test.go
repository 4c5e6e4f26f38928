package event

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestRankOrders(t *testing.T) {
	t.Parallel()
	ordered := []string{
		"-10000000000000000000001", "-20", "-19.5", "-19.25", "-3", "-0.5", "-0.25", "0", "0.001", "0.01", "0.1", "0.5", "1", "1.5", "2", "9", "10", "099.5",
		"100", "1623979265", "1623979266", "9007199254740993", "9007199254740994", "100000000000000000000000",
		"1999-12-31T23:59:59Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.000000001Z", "2026-01-01T00:00:00.1Z", "2026-01-01t00:00:00.25z",
	}
	last := ""
	for _, version := range ordered {
		rank, ok := Rank(version)
		if !ok {
			t.Fatalf("%q is no version", version)
		}
		if rank <= last {
			t.Errorf("%q does not sort behind the one before it", version)
		}
		last = rank
	}
}

func TestRankEquals(t *testing.T) {
	t.Parallel()
	for _, same := range [][2]string{{"1", "1.0"}, {"007", "7"}, {"-0", "0"}, {"2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z"}} {
		a, _ := Rank(same[0])
		b, _ := Rank(same[1])
		if a != b || a == "" {
			t.Errorf("%q ranks %q, %q ranks %q", same[0], a, same[1], b)
		}
	}
	for _, none := range []string{"", "v1", "1e5", "1.", ".5", "-", "0x10", "1,5", "2026-01-01", "+1", " 1", "1_000"} {
		if rank, ok := Rank(none); ok {
			t.Errorf("%q ranks %q", none, rank)
		}
	}
}

// Any two decimals sort as their values do.
func TestRankSortsByValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`-?[0-9]{1,30}(\.[0-9]{1,10})?`)
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		ra, _ := Rank(a)
		rb, _ := Rank(b)
		got := 0
		if ra < rb {
			got = -1
		} else if ra > rb {
			got = 1
		}
		if got != x.Cmp(y) {
			t.Fatalf("%s and %s rank as %d, their values as %d", a, b, got, x.Cmp(y))
		}
	})
}
