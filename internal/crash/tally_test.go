package crash

import "testing"

// TestTallySeesEachFault plants what the harness is there to find.
func TestTallySeesEachFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sends []send
		want  tally
	}{
		"clean":                  {[]send{{"w1", "e1", 0}, {"w2", "e2", 0}}, tally{sends: 2}},
		"repeated after a kill":  {[]send{{"w1", "e1", 0}, {"w1", "e1", 1}}, tally{sends: 2, extra: 1}},
		"repeated within a life": {[]send{{"w1", "e1", 3}, {"w1", "e1", 3}}, tally{sends: 2, extra: 1, sameLife: 1}},
		"two identities":         {[]send{{"w1", "e1", 0}, {"w2", "e1", 1}}, tally{sends: 2, identities: 1}},
		"one identity for two":   {[]send{{"w1", "e1", 0}, {"w1", "e2", 1}}, tally{sends: 2, extra: 1, shared: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSink(t)
			for _, one := range c.sends {
				s.note(one)
			}
			if got := s.tally(); got != c.want {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
			if n, first := s.missing([]string{"e1", "e9"}); n != 1 || first != "e9" {
				t.Fatalf("%d missing, the first is %q", n, first)
			}
		})
	}
}
