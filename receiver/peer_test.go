package receiver

import (
	"net/http"
	"net/netip"
	"testing"
)

func TestPeer(t *testing.T) {
	t.Parallel()
	proxies, err := ParseProxies([]string{"10.0.0.0/8", "::1", "192.0.2.7"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, remote string
		forwarded    []string
		want         string
	}{
		{"direct", "203.0.113.9:1", nil, "203.0.113.9"},
		{"forged by a stranger", "203.0.113.9:1", []string{"1.2.3.4"}, "203.0.113.9"},
		{"through a proxy", "10.1.1.1:1", []string{"1.2.3.4"}, "1.2.3.4"},
		{"forged left entry", "10.1.1.1:1", []string{"6.6.6.6, 1.2.3.4"}, "1.2.3.4"},
		{"two lines", "10.1.1.1:1", []string{"6.6.6.6", "1.2.3.4"}, "1.2.3.4"},
		{"two proxies", "10.1.1.1:1", []string{"1.2.3.4, 10.2.2.2"}, "1.2.3.4"},
		{"two proxies, two lines", "10.1.1.1:1", []string{"6.6.6.6,1.2.3.4", "10.2.2.2"}, "1.2.3.4"},
		{"mapped peer", "[::ffff:10.1.1.1]:1", []string{"1.2.3.4"}, "1.2.3.4"},
		{"mapped entry", "192.0.2.7:1", []string{"::ffff:1.2.3.4"}, "1.2.3.4"},
		{"loopback v6", "[::1]:1", []string{"2001:db8::1"}, "2001:db8::1"},
		{"entry with a port", "10.1.1.1:1", []string{"1.2.3.4:5678"}, "1.2.3.4"},
		{"v6 with a port", "10.1.1.1:1", []string{"[2001:db8::1]:5"}, "2001:db8::1"},
		{"v6 in brackets", "10.1.1.1:1", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"none", "10.1.1.1:1", nil, "10.1.1.1"},
		{"empty", "10.1.1.1:1", []string{""}, "10.1.1.1"},
		{"nonsense", "10.1.1.1:1", []string{"1.2.3.4, unknown"}, "10.1.1.1"},
		{"only proxies", "10.1.1.1:1", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"no address", "@", nil, "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: row.remote, Header: http.Header{"X-Forwarded-For": row.forwarded}}
		if got := PeerOf(r, proxies).String(); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// FuzzForwardedFor: whatever the header says, the peer is the connection's own
// unless that is a trusted proxy, and finding it ends.
func FuzzForwardedFor(f *testing.F) {
	for _, seed := range []string{"", "1.2.3.4", "6.6.6.6, 1.2.3.4", "[::1]:80", ",,,,", "10.0.0.1,10.0.0.1", "fe80::1%eth0"} {
		f.Add("10.0.0.1:80", seed, seed)
		f.Add("203.0.113.9:80", seed, "")
	}
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, remote, first, second string) {
		r := &http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": {first, second}}}
		peer := PeerOf(r, proxies)
		if own := connectionPeer(remote); !isTrusted(own, proxies) && peer != own {
			t.Errorf("%q made %s believed from %s", first+second, peer, remote)
		}
		if peer.Is4In6() || peer.Zone() != "" {
			t.Errorf("%s is not in its plain form", peer)
		}
	})
}
