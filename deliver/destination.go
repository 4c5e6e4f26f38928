package deliver

import (
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"time"

	"creel/config"
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
}

// Destination makes attempts at one HTTP destination. It is safe for
// concurrent use.
type Destination struct {
	name          string
	url           *url.URL // without user information
	place         string   // the URL as it may be shown
	key           []byte   // signing key; nil sends unsigned
	own           http.Header
	host          string // of the destination's own headers
	pass          map[string]bool
	agent         string
	timeout       time.Duration
	connect       time.Duration
	maxRetryAfter time.Duration
	inFlight      int
	rate          float64
	review        bool
	retry4xx      bool
	hidden        []string // texts that no error and no kept answer may show
	transport     *http.Transport
	clock         func() time.Time
}

// New compiles the configuration of one destination. prefix is the key path
// of its table (destination.app). Without a fault among the problems the
// destination is usable; with one it is nil.
func New(name string, cfg config.Destination, prefix string, opt Options) (*Destination, config.Problems) {
	if opt.Clock == nil {
		return nil, config.Problems{{Path: prefix, Message: errNoClock.Error()}}
	}
	c := compiler{prefix: prefix, env: opt.Env}
	d := &Destination{name: name, clock: opt.Clock, rate: float64(cfg.Rate), agent: "Creel"}
	if opt.Version != "" {
		d.agent += "/" + opt.Version
	}
	c.place(d, cfg.URL)
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
	if len(c.problems.Faults()) > 0 {
		return nil, c.problems
	}
	d.transport = newTransport(d.connect, d.inFlight, opt.RootCAs)
	return d, c.problems
}

// Name is the name of the destination in the configuration.
func (d *Destination) Name() string { return d.name }

// String is the URL as it may be shown: without user information and query.
func (d *Destination) String() string { return d.place }

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
func (d *Destination) Close() { d.transport.CloseIdleConnections() }
