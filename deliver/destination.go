package deliver

import (
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"creel/config"
	"creel/event"
)

// Defaults of a destination, where its configuration is silent. They are those
// of the configuration's own defaults, repeated so that a Destination that was
// built in Go behaves alike.
const (
	defaultTimeout       = 10 * time.Second
	defaultConnect       = 3 * time.Second
	defaultMaxRetryAfter = 24 * time.Hour
	defaultInFlight      = 8
)

// errNoClock says that Options.Clock is missing.
var errNoClock = errors.New("deliver: a destination needs a clock")

// Options are what a destination needs beside its configuration.
type Options struct {
	Env     func(string) (string, bool) // the environment, for secrets
	Clock   func() time.Time
	Version string // for User-Agent, where the sender had none
	// Retry4xx is the word of the destination's retry policy, for a
	// configuration that does not say it itself.
	Retry4xx bool
	// RootCAs replaces the system's certificate authorities; nil keeps them.
	RootCAs *x509.CertPool
	// Resolver replaces the system's; nil keeps it.
	Resolver *net.Resolver
	// Tenant is the owner's name for an account of a source, "" for none; nil
	// knows none.
	Tenant func(source, account string) string
	// Link makes the signed URL under which the body of an event can be had
	// until a time. Only a destination with max_body asks for it.
	Link func(seq int64, key event.Key, until time.Time) string
	// Schedule is how long the retry policy of the destination goes on.
	Schedule time.Duration
}

// Destination makes attempts at one HTTP destination. It is safe for
// concurrent use.
type Destination struct {
	name          string
	url           *url.URL // without user information
	place         string   // the URL as it may be shown
	method        string
	target        target
	address       *addressWords // nil where the URL is the same for every shipment
	draft         *draft        // nil sends the event's own body
	maxBody       int           // a larger body stays here; 0 sends any
	bodyTTL       time.Duration
	link          func(seq int64, key event.Key, until time.Time) string
	tenant        func(source, account string) string
	signer        *signer // nil sends unsigned
	own           http.Header
	worded        []headerWords // of own, those that are templates
	host          string        // of the destination's own headers
	pass          map[string]bool
	agent         string
	outline       outline
	timeout       time.Duration
	connect       time.Duration
	maxRetryAfter time.Duration
	inFlight      int
	rate          float64
	review        bool
	retry4xx      bool
	success       []int // nil is 2xx and 409
	mask
	pool    *pool
	pools   *pools // instead of it, where an event decides what is dialled
	buffers buffers
	clock   func() time.Time
}

// New compiles the configuration of one destination. prefix is the key path
// of its table (destination.app). Without a fault among the problems the
// destination is usable; with one it is nil.
func New(name string, cfg config.Destination, prefix string, opt Options) (*Destination, config.Problems) {
	if opt.Clock == nil {
		return nil, config.Problems{{Path: prefix, Message: errNoClock.Error()}}
	}
	c := compiler{prefix: prefix, env: opt.Env}
	d := &Destination{name: name, clock: opt.Clock, rate: float64(cfg.Rate), agent: "Creel", own: http.Header{}, success: cfg.Success,
		method: orElse(cfg.Method, http.MethodPost), tenant: opt.Tenant, link: opt.Link}
	if opt.Version != "" {
		d.agent += "/" + opt.Version
	}
	c.resolveSettings(d, cfg.Settings)
	c.place(d, cfg.URL)
	d.draft = c.draft(cfg.Body)
	c.size(d, cfg, opt)
	c.secret(d, cfg.Secret)
	c.times(d, cfg)
	c.doubt(d, cfg.OnDoubt)
	c.passed(d, cfg.PassHeaders)
	c.headers(d, cfg.Headers)
	d.inFlight = c.inFlight(cfg.MaxInFlight)
	d.retry4xx = opt.Retry4xx
	if cfg.Retry4xx != nil {
		d.retry4xx = *cfg.Retry4xx
	}
	c.target(d)
	c.exposed(d, &cfg)
	if len(c.problems.Faults()) > 0 {
		return nil, c.problems
	}
	d.outline = d.newOutline()
	if d.address != nil && d.address.free {
		d.pools = newPools(d.connect, opt)
	} else {
		d.pool = newPool(&d.target, &net.Dialer{Resolver: opt.Resolver}, d.connect, d.inFlight, opt.RootCAs)
	}
	return d, c.problems
}

// Name is the name of the destination in the configuration.
func (d *Destination) Name() string { return d.name }

// String is the URL as it may be shown: without user information and query.
func (d *Destination) String() string { return d.place }

// Local tells whether its deliveries can not leave this machine.
func (d *Destination) Local() bool { return d.pools == nil && isLocal(d.url.Hostname()) }

// Wraps tells whether large bodies are to be fetched instead of being sent.
func (d *Destination) Wraps() bool { return d.maxBody > 0 }

// InFlight is how many attempts may run at once.
func (d *Destination) InFlight() int { return d.inFlight }

// Rate is how many attempts may start in a second; 0 is no limit.
func (d *Destination) Rate() float64 { return d.rate }

// MaxRetryAfter is the longest wait that an answer can ask for.
func (d *Destination) MaxRetryAfter() time.Duration { return d.maxRetryAfter }

// Review tells whether a send whose answer was lost waits for a person
// instead of being repeated.
func (d *Destination) Review() bool { return d.review }

// Close drops the connections that are kept for reuse. Running attempts are
// not touched.
func (d *Destination) Close() {
	if d.pools != nil {
		d.pools.close()
		return
	}
	d.pool.close()
}
