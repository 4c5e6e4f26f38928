package deliver

import (
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"creel/config"
	"creel/path"
)

// NewFetcher compiles the fetch of a rule. prefix is the key path of its table
// (rule[0].fetch). Without a fault among the problems the fetcher is usable;
// with one it is nil. Retry4xx of the options is not used.
func NewFetcher(cfg config.Fetch, prefix string, opt Options) (*Fetcher, config.Problems) {
	if opt.Clock == nil {
		return nil, config.Problems{{Path: prefix, Message: errNoClock.Error()}}
	}
	c := compiler{prefix: prefix, env: opt.Env}
	agent := "Creel"
	if opt.Version != "" {
		agent += "/" + opt.Version
	}
	f := &Fetcher{clock: opt.Clock, header: http.Header{"User-Agent": {agent}, "Accept": {"application/json"}}}
	c.fetched(f, cfg.URL)
	c.token(f, cfg)
	for _, name := range slices.Sorted(maps.Keys(cfg.Headers)) {
		c.fetchHeader(f, name, cfg.Headers[name])
	}
	f.timeout = c.duration("timeout", cfg.Timeout, defaultFetch, time.Hour)
	if len(c.problems.Faults()) > 0 {
		return nil, c.problems
	}
	f.client = newFetchClient(opt)
	return f, c.problems
}

// newFetchClient follows no redirect, because a token is for the address that
// the configuration names, and uses no proxy and no compression, so that the
// bound of an answer is one of its bytes.
func newFetchClient(opt Options) *http.Client {
	dialer := &net.Dialer{Timeout: defaultConnect}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: opt.RootCAs, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    defaultConnect,
			MaxIdleConnsPerHost:    defaultInFlight,
			IdleConnTimeout:        idleFetch,
			DisableCompression:     true,
			MaxResponseHeaderBytes: mostAnswerHeader,
		},
	}
}

// fetched takes the template's address apart. Scheme, host and port have to be
// written out: a place of the event in them would let whoever sends the event
// choose who gets the token.
func (c *compiler) fetched(f *Fetcher, text string) {
	const example = `write scheme, host and a slash before the first place, such as "https://api.example.com/orders/{object}"`
	if text == "" {
		c.fault("url", "the fetch has no url", example)
		return
	}
	template, err := path.ParseTemplate(text, path.EventNames()...)
	if err != nil {
		c.fault("url", err.Error(), example)
		return
	}
	address, rest, varies := address(template)
	u, err := url.Parse(address)
	switch {
	case varies:
		c.fault("url", "does not begin with an address that is the same for every event", example)
		return
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		c.fault("url", "does not begin with http:// or https:// and a host", example)
		return
	case u.User != nil:
		c.fault("url", "has a user in its address", "set token, or a header such as Authorization, from a secret")
		return
	case !isPort(u.Port()):
		c.fault("url", "the url's port is not between 1 and 65535", example)
		return
	}
	f.scheme, f.host = strings.ToLower(u.Scheme), u.Host
	way, query, asks := strings.Cut(rest, "?")
	if strings.Contains(rest, "#") {
		c.fault("url", "what follows # is never sent", "remove it")
	}
	f.place = u.Scheme + "://" + u.Host + way
	if asks {
		f.place += "?…"
		f.hideQuery(query)
	}
	if f.scheme == "http" && !isLocal(u.Hostname()) {
		c.warn("url", "the token and the answers travel unencrypted to another machine", "use https:// where the network is not yours alone")
	}
}

// address is what the template's first text says up to the end of the host, and
// the rest of the template as it is written. varies tells that a place of the
// event comes before that end.
func address(t *path.Template) (address, rest string, varies bool) {
	text := t.String()
	pieces := t.Pieces()
	first := ""
	if len(pieces) > 0 {
		first = pieces[0].Literal
	}
	scheme, behind, ok := strings.Cut(first, "://")
	if !ok {
		return first, "", true
	}
	end := strings.IndexAny(behind, "/?#")
	if end < 0 {
		return first, "", len(pieces) > 1
	}
	at := len(scheme) + len("://") + end
	return first[:at], text[at:], false
}

func (c *compiler) token(f *Fetcher, cfg config.Fetch) {
	if cfg.Token.IsZero() {
		return
	}
	for name := range cfg.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			c.fault("token", "there is a token and a header Authorization", "keep one of them: the token is sent as Authorization: Bearer")
		}
	}
	plain, ok := c.resolve("token", cfg.Token)
	if !ok {
		return
	}
	if !isFieldValue(string(plain)) {
		c.fault("token", "has a character that no header can carry", "look for a line end inside it")
		return
	}
	for _, warning := range cfg.Token.Warnings(c.env) {
		c.warn("token", warning, "")
	}
	f.header.Set("Authorization", "Bearer "+string(plain))
	f.credential(string(plain))
}

func (c *compiler) fetchHeader(f *Fetcher, name string, value config.Secret) {
	key := config.Join("headers", name)
	canonical := http.CanonicalHeaderKey(name)
	plain, ok := c.resolve(key, value)
	switch {
	case !ok:
	case !isToken(name):
		c.fault(key, strconv.Quote(name)+" is not the name of a header", "use letters, digits and hyphens")
	case canonical != "Host" && (neverPassed[canonical] || canonical == "Accept-Encoding"):
		c.fault(key, name+" belongs to the connection and can not be set", "remove it")
	case !isFieldValue(string(plain)):
		c.fault(key, "the value has a character that no header can carry", "look for a line end inside it")
	case canonical == "Host":
		f.sentHost = string(plain)
	default:
		f.header[canonical] = []string{string(plain)}
		if !value.Literal() || canonical == "Authorization" || canonical == "Cookie" {
			f.credential(string(plain))
		}
	}
}
