package deliver

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

var (
	// errNoHead says that net/http writes requests in another way than we know.
	errNoHead = errors.New("net/http wrote no request line and Host")
	// errOtherHost says that it would send another host than was asked for: it
	// empties one that is none, and cuts off what follows a slash.
	errOtherHost = errors.New("no host can be written like that")
)

// target is where a request goes and how it begins: all of it that is the same
// for every delivery. A destination whose URL is fixed has one for its life.
type target struct {
	address string        // host:port that is dialled
	name    string        // that the certificate has to carry
	secure  bool          // TLS
	head    []byte        // request line and Host, as net/http writes them
	asked   *http.Request // for http.ReadResponse: the answers to a HEAD have no body
}

// newTarget lets net/http write the head, so that methods, paths and hosts are
// checked and written (names outside ASCII too) as everywhere else in Go.
// host replaces the URL's in the Host header where it is not empty.
func newTarget(method string, u *url.URL, host string) (target, error) {
	head, err := requestHead(method, u, host)
	if err != nil {
		return target{}, err
	}
	t := target{name: u.Hostname(), secure: u.Scheme == "https", head: head, asked: &http.Request{Method: method}}
	if !isASCII(t.name) {
		plain, err := requestHead(method, u, "")
		if err != nil {
			return target{}, err
		}
		_, written, _ := bytes.Cut(plain, []byte("\r\nHost: "))
		t.name = (&url.URL{Host: string(bytes.TrimSpace(written))}).Hostname()
	}
	port := u.Port()
	switch {
	case port != "":
	case t.secure:
		port = "443"
	default:
		port = "80"
	}
	t.address = net.JoinHostPort(t.name, port)
	return t, nil
}

func requestHead(method string, u *url.URL, host string) ([]byte, error) {
	var wire bytes.Buffer
	req := &http.Request{Method: method, URL: u, Host: host, Header: http.Header{"User-Agent": {""}}}
	if err := req.Write(&wire); err != nil {
		return nil, fmt.Errorf("writing the head of a request: %w", err)
	}
	line, rest, _ := bytes.Cut(wire.Bytes(), []byte("\r\n"))
	named, _, ok := bytes.Cut(rest, []byte("\r\n"))
	if !ok || !bytes.HasPrefix(named, []byte("Host: ")) {
		return nil, errNoHead
	}
	if asked := orElse(host, u.Host); isASCII(asked) && string(named[len("Host: "):]) != withoutZone(asked) {
		return nil, errOtherHost
	}
	return wire.Bytes()[:len(line)+len(named)+2*len("\r\n")], nil
}

// withoutZone is a host without the zone of an IPv6 address, which is this
// machine's own.
func withoutZone(host string) string {
	before, rest, found := strings.Cut(host, "%")
	if _, port, ok := strings.Cut(rest, "]"); found && ok && strings.HasPrefix(host, "[") {
		return before + "]" + port
	}
	return host
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
