package deliver

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// TestBugOUT02Addresses judges addresses of every kind and spelling.
func TestBugOUT02Addresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback", "::ffff:7f00:1": "loopback",
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified", "::ffff:0.0.0.0": "unspecified",
		"10.0.0.1": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private", "fc00::1": "private", "fd12::1": "private", "fec0::1": "private",
		"169.254.1.1": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local", "febf::1": "link-local",
		"169.254.169.254": "metadata", "169.254.170.2": "metadata", "100.100.100.200": "metadata", "192.0.0.192": "metadata", "168.63.129.16": "metadata", "fd00:ec2::254": "metadata",
		"::ffff:169.254.169.254": "metadata", "64:ff9b::a9fe:a9fe": "metadata", "100.64.0.1": "CGNAT", "100.127.255.255": "CGNAT",
		"224.0.0.1": "multicast", "239.255.255.250": "multicast", "ff02::1": "multicast", "255.255.255.255": "reserved", "240.0.0.1": "reserved",
		"64:ff9b::7f00:1": "loopback", "64:ff9b::10.0.0.1": "private", "64:ff9b:1::1": "NAT64",
		"2002:7f00:1::": "6to4", "2002:808:808::1": "6to4", "192.88.99.1": "6to4", "2001::1": "Teredo", "2001:0:808:808::1": "Teredo", "2001:20::1": "reserved",
		"::127.0.0.1": "reserved", "::8.8.8.8": "reserved", "::ffff:0:127.0.0.1": "reserved", "100::1": "reserved", "2001:db8::1": "reserved", "3fff::1": "reserved",
		"5f00::1": "reserved", "198.18.0.1": "reserved", "192.0.2.1": "reserved", "198.51.100.1": "reserved", "203.0.113.1": "reserved", "192.0.0.1": "reserved",
		"1.1.1.1": "", "8.8.8.8": "", "100.63.255.255": "", "100.128.0.1": "", "172.15.0.1": "", "172.32.0.1": "", "11.0.0.1": "", "169.253.0.1": "", "223.255.255.255": "",
		"128.0.0.1": "", "2606:4700::1": "", "2a00:1450::1": "", "::ffff:8.8.8.8": "", "64:ff9b::8.8.8.8": "",
	} {
		got := internal(netip.MustParseAddr(address))
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	var refused *forbidden
	if err := guard(t.Context(), "tcp", "no address", nil); !errors.As(err, &refused) {
		t.Error("what is no address is let through")
	}
}

// to is a shipment whose event names a place.
func to(place string) event.Shipment {
	s := shipment()
	s.Payload.Body = []byte(`{"to":` + string(appendJSON(nil, place)) + `}`)
	return s
}

// TestBugOUT02 lets events name addresses in every spelling. A server on this
// machine is there for each, and gets nothing.
func TestBugOUT02(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(app.URL, "http://"))
	whole := compiled(t, config.Destination{URL: "{body.to}"})
	host := compiled(t, config.Destination{URL: "http://{body.to}:" + port + "/x/{body.to}"})
	part := compiled(t, config.Destination{URL: "http://127.0.0.{body.to}:" + port + "/"})
	onPort := compiled(t, config.Destination{URL: "http://127.0.0.1:{body.to}/"})
	for _, c := range []struct {
		d          *Destination
		to, reason string
	}{
		{whole, app.URL, "loopback"}, {whole, "HTTP://LOCALHOST:" + port, "loopback"}, {whole, "http://[::ffff:127.0.0.1]:" + port, "loopback"},
		{whole, "http://[::ffff:7f00:1]:" + port, "loopback"}, {whole, "http://[::1]:" + port, "loopback"}, {whole, "http://0.0.0.0:" + port, "unspecified"},
		{whole, "http://[::]:" + port, "unspecified"}, {whole, "https://127.0.0.1:" + port, "loopback"}, {whole, "http://[64:ff9b::7f00:1]:" + port, "loopback"},
		{whole, "http://[fe80::1%25lo]:" + port, "link-local"}, {whole, "http://169.254.169.254/latest/meta-data", "metadata"}, {whole, "http://[2002:7f00:1::]/", "6to4"},
		{whole, "http://0x7f000001:" + port, "number"}, {whole, "http://0X7F.1:" + port, "number"}, {whole, "http://017700000001:" + port, "number"}, {whole, "http://2130706433:" + port, "number"},
		{whole, "http://127.1:" + port, "number"}, {whole, "http://0177.0.0.1:" + port, "number"}, {whole, "http://127.0.0.1.:" + port, "number"}, {whole, "http://127.0.0.256", "number"},
		{whole, "http://user@127.0.0.1:" + port, "user"}, {whole, "http://public.example:80@127.0.0.1:" + port, "user"}, {whole, "http://@127.0.0.1:" + port, "user"},
		{whole, "file:///etc/passwd", "begin with http"}, {whole, "gopher://127.0.0.1:" + port, "begin with http"}, {whole, "//127.0.0.1:" + port, "begin with http"}, {whole, "unix:/run/x", "begin with http"},
		{whole, "http:127.0.0.1:" + port, "do not make a URL"}, {whole, "http://", "do not make a URL"}, {whole, "http:///x", "do not make a URL"}, {whole, "http://127.0.0.1:99999", "do not make a URL"},
		{whole, "http://127.0.0.1\\@public.example", "do not make a URL"}, {whole, "http://127.0.0.1 :80", "do not make a URL"}, {whole, "http://127.0.0.1:" + port + "\r\nX: y", "do not make a URL"},
		{whole, "http://127.0.0.1:80:" + port, "do not make a URL"}, {whole, "\x00", "do not make a URL"},
		{host, "127.0.0.1", "loopback"}, {host, "[::1]", "loopback"}, {host, "localhost", "loopback"}, {host, "0x7f000001", "number"}, {host, "2130706433", "number"},
		{host, "127.0.0.1/", "can not stand in a host"}, {host, "127.0.0.1#", "can not stand in a host"}, {host, "127.0.0.1?", "can not stand in a host"}, {host, "x@127.0.0.1", "can not stand in a host"},
		{host, "127.0.0.1\\", "can not stand in a host"}, {host, "127.0.0.1%2f", "can not stand in a host"}, {host, "127。0.0.1", "can not stand in a host"},
		{part, "1", "loopback"}, {onPort, port, "loopback"},
	} {
		result := c.d.Attempt(t.Context(), to(c.to), time.Now())
		a := result.Attempt
		if a.Outcome != event.Permanent || !strings.Contains(a.Error, c.reason) || result.Wrote || result.Answered() {
			t.Errorf("%s: %s %d, %q, want %q", c.to, a.Outcome, a.Status, a.Error, c.reason)
		}
		if strings.Contains(a.Error, "127.") || strings.Contains(a.Error, port) {
			t.Errorf("%s: %q tells what the event named", c.to, a.Error)
		}
	}
	if app.Count() != 0 || app.Open() != 0 {
		t.Errorf("%d requests and %d connections came", app.Count(), app.Open())
	}
	trusted := compiled(t, config.Destination{URL: "http://127.0.0.1:" + port + "/x/{body.to}?y={body.to}"})
	if a := trusted.Attempt(t.Context(), to("a@b:1/../"), time.Now()).Attempt; a.Outcome != event.OK || app.Requests()[0].URL != "/x/a@b:1%2F..%2F?y=a%40b%3A1%2F..%2F" {
		t.Errorf("where the host is written: %s %v", a.Error, app.Requests())
	}
}

// TestBugOUT02Rebinding resolves a name to a public address first and to this
// machine then, and to both at once: each dial is checked, and none reaches it.
func TestBugOUT02Rebinding(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(app.URL, "http://"))
	names := newNames(t)
	d := compiled(t, config.Destination{URL: "{body.to}", ConnectTimeout: config.Duration(5 * time.Second)}, func(o *Options) { o.Resolver = names.resolver() })
	var mu sync.Mutex
	var dialled []string
	checked := d.pools.dialer.ControlContext
	d.pools.dialer.ControlContext = func(ctx context.Context, network, address string, raw syscall.RawConn) error {
		mu.Lock()
		dialled = append(dialled, address)
		mu.Unlock()
		if err := checked(ctx, network, address, raw); err != nil {
			return err
		}
		return syscall.ECONNREFUSED // the test stays on this machine
	}
	attempt := func(addresses ...string) event.Attempt {
		t.Helper()
		names.set(addresses...)
		mu.Lock()
		dialled = nil
		mu.Unlock()
		return d.Attempt(t.Context(), to("http://rebind.example:"+port+"/"), time.Now()).Attempt
	}
	if a := attempt("93.184.216.34"); a.Outcome != event.Transient || !strings.Contains(a.Error, "refused") || len(dialled) != 1 {
		t.Errorf("the public address: %s %q, dialled %v", a.Outcome, a.Error, dialled)
	}
	if a := attempt("127.0.0.1"); a.Outcome != event.Permanent || !strings.Contains(a.Error, "loopback") {
		t.Errorf("the same name, later: %s %q", a.Outcome, a.Error)
	}
	if a := attempt("169.254.169.254"); a.Outcome != event.Permanent || !strings.Contains(a.Error, "metadata") {
		t.Errorf("metadata: %s %q", a.Outcome, a.Error)
	}
	attempt("93.184.216.34", "127.0.0.1")
	if len(dialled) != 2 || app.Count() != 0 || app.Open() != 0 {
		t.Errorf("both at once: dialled %v, %d requests", dialled, app.Count())
	}
	if a := attempt(); a.Outcome != event.Transient || strings.Contains(a.Error, "rebind") {
		t.Errorf("a name that is not there: %s %q", a.Outcome, a.Error)
	}
	if result := d.Attempt(t.Context(), to("http://rebind.example:"+port+"/"), time.Now()); !result.Alive {
		t.Error("what one event named counts against the others")
	}
}

// TestFreeHostsStayHidden although a certificate's error names them.
func TestFreeHostsStayHidden(t *testing.T) {
	t.Parallel()
	app := testkit.NewTLSDestination(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(app.URL, "https://"))
	names := newNames(t)
	names.set("127.0.0.1")
	roots := x509.NewCertPool()
	roots.AddCert(app.Server.Certificate())
	d := compiled(t, config.Destination{URL: "{body.to}"}, func(o *Options) { o.Resolver, o.RootCAs = names.resolver(), roots })
	d.pools.dialer.ControlContext = nil // it is on this machine
	a := d.Attempt(t.Context(), to("https://tenant.test:"+port+"/"), time.Now()).Attempt
	if a.Outcome != event.Transient || !strings.Contains(a.Error, "TLS: ") || strings.Contains(a.Error, "tenant") {
		t.Errorf("%s %q", a.Outcome, a.Error)
	}
}

// TestPools keeps few addresses, and of those that are used again the
// connections.
func TestPools(t *testing.T) {
	t.Parallel()
	apps := []*testkit.Destination{testkit.NewDestination(t), testkit.NewDestination(t)}
	d := compiled(t, config.Destination{URL: "{body.to}"})
	d.pools.dialer.ControlContext = nil // they are on this machine
	for range 3 {
		for _, app := range apps {
			if a := d.Attempt(t.Context(), to(app.URL+"/x"), time.Now()).Attempt; a.Outcome != event.OK {
				t.Fatal(a.Error)
			}
		}
	}
	for _, app := range apps {
		if r := app.Requests(); len(r) != 3 || r[0].Peer != r[2].Peer {
			t.Errorf("%d requests over %s and %s", len(r), r[0].Peer, r[len(r)-1].Peer)
		}
	}
	for i := range 3 * mostPools {
		d.pools.of(&target{address: net.JoinHostPort("host"+string(rune('a'+i%26))+strings.Repeat("x", i), "80")})
	}
	if len(d.pools.known) != mostPools {
		t.Errorf("%d pools are kept", len(d.pools.known))
	}
	testkit.Poll(t, 5*time.Second, "the connections of forgotten addresses are closed", func() bool { return apps[0].Open() == 0 && apps[1].Open() == 0 })
	d.Close()
	if a := d.Attempt(t.Context(), to(apps[0].URL), time.Now()).Attempt; a.Outcome != event.OK {
		t.Errorf("an attempt that crosses a reload: %s", a.Error)
	}
}

// names is a DNS server that answers every question for IPv4 with what it is
// told.
type names struct {
	conn      net.PacketConn
	mu        sync.Mutex
	addresses []string
}

func newNames(t *testing.T) *names {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{conn: conn}
	t.Cleanup(func() { _ = conn.Close() })
	go n.serve()
	return n
}

func (n *names) set(addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses = addresses
}

func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

func (n *names) serve() {
	buffer := make([]byte, 512)
	for {
		size, peer, err := n.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = n.conn.WriteTo(n.answer(buffer[:size]), peer)
	}
}

// answer writes a DNS message (RFC 1035, section 4.1) for one question.
func (n *names) answer(question []byte) []byte {
	end := 12
	for end < len(question) && question[end] != 0 {
		end += int(question[end]) + 1
	}
	end += 5
	kind := binary.BigEndian.Uint16(question[end-4:])
	out := append([]byte(nil), question[:end]...)
	n.mu.Lock()
	defer n.mu.Unlock()
	out[2], out[3] = 0x81, 0x80 // an answer, recursion available
	clear(out[6:12])
	if len(n.addresses) == 0 {
		out[3] |= 3 // no such name
	}
	if kind != 1 {
		return out
	}
	out[7] = byte(len(n.addresses))
	for _, address := range n.addresses {
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		out = append(out, netip.MustParseAddr(address).AsSlice()...)
	}
	return out
}
