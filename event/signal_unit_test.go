package event

import "testing"

func TestUnitOf(t *testing.T) {
	t.Parallel()
	for unit, one := range map[string]string{"events": "event", "deliveries": "delivery", "requests": "request", "attempts": "attempt", "logins": "login", "": ""} {
		if got := UnitOf(1, unit); got != one {
			t.Errorf("1 %s, want %s", got, one)
		}
		if got := UnitOf(2, unit) + UnitOf(0, unit) + UnitOf(1.5, unit); got != unit+unit+unit {
			t.Errorf("%s: %s", unit, got)
		}
	}
}
