package event

import "testing"

func TestMatchGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"*", "orders/create", true}, {"invoice.*", "invoice.paid", true}, {"invoice.*", "invoice", false},
		{"*.paid", "invoice.paid", true}, {"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXbYbZ", false}, {"", "", true}, {"", "x", false},
		{"v?", "v1", true}, {"v?", "v", false}, {"exact", "exact", true}, {"Exact", "exact", false}, {"[ab]", "[ab]", true},
		{"**", "x", true}, {"*a", "aaab", false}, {"*?", "", false},
	} {
		if got := MatchGlob(c.pattern, c.text); got != c.want {
			t.Errorf("MatchGlob(%q, %q) = %v", c.pattern, c.text, got)
		}
	}
}

func TestMatchAny(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		patterns []string
		want     bool
	}{{nil, true}, {[]string{"order.*"}, true}, {[]string{"note", "order.p*"}, true}, {[]string{"note", "order"}, false}} {
		if got := MatchAny(c.patterns, "order.paid"); got != c.want {
			t.Errorf("%q: %t", c.patterns, got)
		}
	}
}
