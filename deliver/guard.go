package deliver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// forbidden is an address that the values of an event must not lead to. Its
// text names the kind alone: the address came from the event.
type forbidden struct{ kind string }

// Error implements error.
func (e *forbidden) Error() string {
	return fmt.Sprintf("the event's values lead to %s, and only public addresses are reached by them", e.kind)
}

// forbiddenIn finds in the error of a dial that the address was forbidden; nil
// is another reason.
func forbiddenIn(err error) *forbidden {
	var found *forbidden
	if errors.As(err, &found) {
		return found
	}
	return nil
}

// guard is the Control of a dialer: it sees each address that a name led to,
// right before it is dialled.
func guard(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &forbidden{kind: "something that is no IP address"}
	}
	if kind := internal(to.Addr()); kind != "" {
		return &forbidden{kind: kind}
	}
	return nil
}

// special is a block of addresses that are not those of public hosts.
type special struct {
	block string
	kind  string
}

// specials are the blocks of the IANA registries of special-purpose IPv4 and
// IPv6 addresses (RFC 6890) that no public host has, the first that fits
// counting, and where clouds tell their machines about themselves.
func specials() []special {
	const metadata = "a cloud's metadata address"
	return []special{
		{"169.254.169.254/32", metadata}, {"169.254.170.2/32", metadata}, {"100.100.100.200/32", metadata},
		{"192.0.0.192/32", metadata}, {"168.63.129.16/32", metadata}, {"fd00:ec2::254/128", metadata},
		{"0.0.0.0/8", "an unspecified address"}, {"::/128", "an unspecified address"},
		{"127.0.0.0/8", "a loopback address"}, {"::1/128", "a loopback address"},
		{"10.0.0.0/8", "a private address"}, {"172.16.0.0/12", "a private address"}, {"192.168.0.0/16", "a private address"},
		{"fc00::/7", "a private address"}, {"fec0::/10", "a private address"},
		{"169.254.0.0/16", "a link-local address"}, {"fe80::/10", "a link-local address"},
		{"100.64.0.0/10", "an address of a carrier's network (CGNAT)"},
		{"224.0.0.0/4", "a multicast address"}, {"ff00::/8", "a multicast address"},
		{"192.88.99.0/24", "a 6to4 relay"}, {"2002::/16", "a 6to4 address"},
		{"2001::/32", "a Teredo address"}, {"2001::/23", "a reserved address"},
		{"64:ff9b:1::/48", "a local NAT64 address"},
		{"192.0.0.0/24", "a reserved address"}, {"192.0.2.0/24", "a reserved address"}, {"198.18.0.0/15", "a reserved address"},
		{"198.51.100.0/24", "a reserved address"}, {"203.0.113.0/24", "a reserved address"}, {"240.0.0.0/4", "a reserved address"},
		{"2001:db8::/32", "a reserved address"}, {"3fff::/20", "a reserved address"},
	}
}

// internal says what kind of address it is that no event may lead to; "" is a
// public one. An IPv4 address inside an IPv6 one counts as itself.
func internal(addr netip.Addr) string {
	addr = addr.WithZone("").Unmap()
	if inner, ok := translated(addr); ok {
		addr = inner
	}
	for _, s := range specials() {
		if netip.MustParsePrefix(s.block).Contains(addr) {
			return s.kind
		}
	}
	if addr.Is6() && !netip.MustParsePrefix("2000::/3").Contains(addr) {
		return "a reserved address" // the IPv4-compatible ones (::a.b.c.d) too
	}
	return ""
}

// translated is the IPv4 address that NAT64 makes of an address of its
// well-known block (RFC 6052): networks without IPv4 reach public hosts by it.
func translated(addr netip.Addr) (netip.Addr, bool) {
	if !netip.MustParsePrefix("64:ff9b::/96").Contains(addr) {
		return netip.Addr{}, false
	}
	whole := addr.As16()
	return netip.AddrFrom4([4]byte(whole[12:])), true
}
