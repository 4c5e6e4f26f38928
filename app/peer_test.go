package app

import (
	"net/http/httptest"
	"testing"

	"creel/config"
)

// Guesses are counted by who makes them where a proxy of the owner's own tells
// it; what anybody else writes into X-Forwarded-For is his invention.
func TestGateO6GuessesAreCountedByTheirPeer(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		trusted           []string
		remote, forwarded string
		want              string
	}{
		"no proxy":                  {nil, "192.0.2.7:4711", "", "192.0.2.7"},
		"an invention":              {nil, "192.0.2.7:4711", "198.51.100.1", "192.0.2.7"},
		"a proxy":                   {[]string{"127.0.0.1"}, "127.0.0.1:4711", "198.51.100.1", "198.51.100.1"},
		"an invention before it":    {[]string{"127.0.0.1"}, "127.0.0.1:4711", "10.9.9.9, 198.51.100.1", "198.51.100.1"},
		"a proxy that tells nobody": {[]string{"127.0.0.1"}, "127.0.0.1:4711", "", "127.0.0.1"},
		"a proxy that is not known": {[]string{"10.0.0.0/8"}, "127.0.0.1:4711", "198.51.100.1", "127.0.0.1"},
		"no address":                {nil, "@", "198.51.100.1", "@"},
	} {
		a := &App{}
		cfg := config.Default()
		cfg.TrustedProxies = c.trusted
		a.snapshot.Store(&Snapshot{Config: cfg})
		r := httptest.NewRequest("POST", "/login", nil)
		r.RemoteAddr = c.remote
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := a.peer(r); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
