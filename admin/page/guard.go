package page

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"

	"creel/event"
)

// policy lets a page load our own style and script and send its forms home;
// nothing else, from nowhere else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Front is what stands before everything that the operator's listener answers:
// it takes the prefix of the public URL off, where the proxy has left it, puts
// the headers that OWASP ASVS 5.0 asks for in 3.4 on every answer, errors
// included, and turns a panic into one. HEAD is asked like GET; net/http sends
// no body then.
func (p *Page) Front(next http.Handler) http.Handler {
	next = p.ownMetrics(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if p.cookie.secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		defer p.recovered(w, r)
		if r.Method == http.MethodHead {
			asked := *r
			asked.Method, r = http.MethodGet, &asked
		}
		if p.prefix == "" {
			next.ServeHTTP(w, r)
			return
		}
		// What begins with the prefix is a link of ours that no proxy has cut.
		if rest, ok := strings.CutPrefix(r.URL.Path, p.stripped); ok && strings.HasPrefix(rest, "/") {
			http.StripPrefix(p.stripped, next).ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownMetrics keeps the metrics of a listener that only this machine reaches from
// pages of strangers, whose name somebody's DNS points at it. A listener for
// others has its metrics read under names that nobody knows beforehand.
func (p *Page) ownMetrics(next http.Handler) http.Handler {
	guarded := p.hosts.guard(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" && p.hosts.loopback {
			guarded.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// recovered answers for a request whose handler panicked: our own fault, and
// this request's alone.
func (p *Page) recovered(w http.ResponseWriter, r *http.Request) {
	what := recover()
	if what == nil {
		return
	}
	if what == http.ErrAbortHandler { // thrown to say nothing more
		panic(what)
	}
	p.opt.Log.Error().Interface(event.FieldReason, what).Str(event.FieldPath, r.URL.Path).Bytes("stack", debug.Stack()).
		Msg("a page could not be made")
	http.Error(w, "This page could not be made; the log says why.", http.StatusInternalServerError)
}

// hosts are the names under which the page may be asked for. A name that
// somebody else's DNS points at this machine is not among them.
type hosts struct {
	names map[string]bool
	// loopback allows the names of this machine with any port: a tunnel ends
	// at one that nobody can know beforehand.
	loopback bool
}

// newHosts allows the host of the public URL and the address that is listened
// on; where that is this machine's own, its usual names too.
func newHosts(public, listen string) hosts {
	h := hosts{names: map[string]bool{}}
	for _, name := range []string{public, listen} {
		if name != "" {
			h.names[strings.ToLower(name)] = true
		}
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return h
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		h.loopback = true
		return h
	}
	// Every interface: by address, which no DNS name can pretend to be.
	h.names["localhost:"+port] = true
	return h
}

func (h hosts) allow(host string) bool {
	host = strings.ToLower(host)
	if h.names[host] {
		return true
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, ""
		if inner, is := strings.CutPrefix(host, "["); is {
			if name, is = strings.CutSuffix(inner, "]"); !is {
				return false
			}
		}
	}
	if strings.Trim(port, "0123456789") != "" {
		return false // a port with a name behind it
	}
	ip, err := netip.ParseAddr(name)
	if h.loopback {
		return name == "localhost" || err == nil && ip.IsLoopback()
	}
	return err == nil && !ip.IsUnspecified()
}

// guard answers 421 to a Host that is not ours, before anything else is looked
// at: the rebound page of a stranger would be of the same origin.
func (h hosts) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.allow(r.Host) {
			http.Error(w, fmt.Sprintf("This page does not answer under the name %q. Set [admin] public_url to the address that you use, and let a proxy pass on the name and port that it was asked for.", r.Host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
