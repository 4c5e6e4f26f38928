package receiver

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// maxHops is how many addresses of X-Forwarded-For are looked at.
const maxHops = 32

// ParseProxies reads the addresses and CIDR networks whose X-Forwarded-For is
// believed.
func ParseProxies(list []string) ([]netip.Prefix, error) {
	proxies := make([]netip.Prefix, 0, len(list))
	for _, text := range list {
		if addr, err := netip.ParseAddr(text); err == nil {
			addr = addr.Unmap().WithZone("")
			proxies = append(proxies, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("trusted proxy %q: want an address or a network such as 10.0.0.0/8: %w", text, err)
		}
		proxies = append(proxies, prefix.Masked())
	}
	return proxies, nil
}

// PeerOf tells who sent a request, for logs, the drawer of rejects and bounds on
// log lines and guesses; never for a decision about what is authentic. The zero
// Addr is nobody who can be told. X-Forwarded-For
// counts only where the connection comes from a trusted proxy, and is read
// from the right: each proxy appends the address that it saw, so what stands
// further left than the first untrusted address is the client's invention.
func PeerOf(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer := connectionPeer(r.RemoteAddr)
	if !isTrusted(peer, trusted) {
		return peer
	}
	chain := strings.Join(r.Header["X-Forwarded-For"], ",")
	for range maxHops {
		if chain == "" {
			break
		}
		var last string
		if at := strings.LastIndexByte(chain, ','); at >= 0 {
			chain, last = chain[:at], chain[at+1:]
		} else {
			chain, last = "", chain
		}
		hop, ok := parseHop(strings.TrimSpace(last))
		if !ok {
			break // what is left of a hop that can not be read was not vouched for
		}
		peer = hop
		if !isTrusted(peer, trusted) {
			break
		}
	}
	return peer
}

// connectionPeer reads the address of the other end of the connection; it is
// the zero Addr where there is none (a unix socket).
func connectionPeer(remote string) netip.Addr {
	port, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return port.Addr().Unmap().WithZone("")
}

// parseHop reads one element of X-Forwarded-For: an address, which some
// proxies write with a port.
func parseHop(text string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return addr.Unmap().WithZone(""), true
	}
	if port, err := netip.ParseAddrPort(text); err == nil {
		return port.Addr().Unmap().WithZone(""), true
	}
	return netip.Addr{}, false
}

func isTrusted(addr netip.Addr, trusted []netip.Prefix) bool {
	for _, prefix := range trusted {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}
