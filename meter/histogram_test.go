package meter

import (
	"sync"
	"testing"
	"time"
)

func TestHistogramCountsUpToItsBounds(t *testing.T) {
	t.Parallel()
	h := NewHistogram([]time.Duration{time.Millisecond, time.Second})
	for _, d := range []time.Duration{-time.Second, time.Millisecond, time.Millisecond + 1, time.Second, time.Hour} {
		h.Observe(d)
	}
	r := h.Read()
	if r.Below[0] != 2 || r.Below[1] != 4 || r.Count != 5 {
		t.Errorf("below %v of %d, want 2 and 4 of 5", r.Below, r.Count)
	}
	if want := time.Hour + time.Second + 2*time.Millisecond + 1; r.Sum != want {
		t.Errorf("sum %s, want %s", r.Sum, want)
	}
}

func TestHistogramLosesNothing(t *testing.T) {
	t.Parallel()
	h := NewHistogram(Short())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 1000 {
				h.Observe(time.Duration(i) * time.Millisecond)
			}
		})
	}
	all.Wait()
	if got := h.Read().Count; got != 4000 {
		t.Errorf("%d observations, want 4000", got)
	}
}

func TestBoundsGrow(t *testing.T) {
	t.Parallel()
	for _, bounds := range [][]time.Duration{Short(), Long()} {
		for i := 1; i < len(bounds); i++ {
			if bounds[i] <= bounds[i-1] {
				t.Errorf("%s stands behind %s", bounds[i], bounds[i-1])
			}
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	h := NewHistogram(Short())
	for b.Loop() {
		h.Observe(3 * time.Millisecond)
	}
}
