package meter

import (
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	h := NewHistogram([]time.Duration{10 * ms, 100 * ms, time.Second})
	if got := h.Read().Quantile(0.5); got != 0 {
		t.Errorf("of nothing: %s", got)
	}
	for range 90 {
		h.Observe(5 * ms)
	}
	for range 10 {
		h.Observe(50 * ms)
	}
	for q, want := range map[float64][2]time.Duration{0: {0, 0}, 0.45: {5 * ms, 5 * ms}, 0.9: {10 * ms, 10 * ms}, 0.95: {55 * ms, 55 * ms}, 1: {100 * ms, 100 * ms}} {
		if got := h.Read().Quantile(q); got < want[0] || got > want[1] {
			t.Errorf("%v: %s, want %s", q, got, want)
		}
	}
	far := NewHistogram([]time.Duration{10 * ms})
	far.Observe(time.Hour)
	if got := far.Read().Quantile(0.5); got != 10*ms {
		t.Errorf("beyond the last bound: %s", got)
	}
}
