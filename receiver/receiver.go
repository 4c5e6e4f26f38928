package receiver

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
	"creel/source"
)

// Inbox is where verified receipts go. Its ctx bounds the waiting only; after
// an error the receipt may still be stored.
type Inbox interface {
	Accept(ctx context.Context, receipt *event.Receipt) (event.Accepted, error)
}

// Pairing takes the secret of a source that its sender hands over, while an
// operator waits for it.
type Pairing interface {
	// Open tells whether somebody waits for the secret of a source. It is asked
	// at every request and must cost nothing.
	Open(source string) bool
	// Take takes the secret that a request hands over and answers it once the
	// secret is kept. Without an answer the request is one like any other; an
	// error says that the secret could not be kept, and the sender has to come
	// again.
	Take(source string, request *source.Request, peer string) (*source.Answer, error)
}

// Source is what the receiver asks of a sender's endpoint. *source.Source is
// one.
type Source interface {
	// Receive verifies a POST and says what it is: a reject, a handshake, or
	// events.
	Receive(request *source.Request, now time.Time) source.Result
	// Probe answers the handshakes that come by GET or HEAD.
	Probe(request *source.Request) (source.Answer, bool)
	// MaxBody is the limit of a body, in bytes.
	MaxBody() int64
	// AcceptsEncoding tells whether a Content-Encoding besides identity may be
	// used. It is given in lower case.
	AcceptsEncoding(coding string) bool
	RejectStatus() int    // of a request that is not authentic
	DuplicateStatus() int // of a receipt whose events are all known
	ProbeStatus() int     // of a GET or HEAD that is no handshake: 200 or 405
	// SecretHeaders are the headers that carry the secret itself. They are
	// kept nowhere.
	SecretHeaders() []string
}

// Options make a Receiver. Zero fields take their defaults.
type Options struct {
	// Sources finds a source by its name. It is asked once a request and must
	// answer from a snapshot.
	Sources func(name string) (Source, bool)
	Inbox   Inbox
	Clock   func() time.Time
	Log     zerolog.Logger
	// Ready tells whether events can be stored now, for /readyz. Without it
	// only a stop makes the receiver unready.
	Ready func() error
	// Pairing takes the secrets that senders hand over. May be nil.
	Pairing Pairing
	// Rejected is told of every request that comes into the drawer; it must not
	// wait. May be nil.
	Rejected func(Rejected)

	Settings

	Memory        int64         // bytes of bodies held at once, all requests together; 64 MiB
	StoreWait     time.Duration // how long a request waits for the store; 8 s
	DrawerEntries int           // rejected requests kept in memory; 200
	DrawerBytes   int           // and their bytes in all; 4 MiB
	DrawerBody    int           // bytes kept of the body of one; 64 KiB
}

// Settings are what a reload can change.
type Settings struct {
	// KeepHeaders are headers that some destination's pass_headers asks for,
	// though they are usually not stored: Authorization, Cookie.
	KeepHeaders []string
	// TrustedProxies are the addresses and networks whose X-Forwarded-For is
	// believed.
	TrustedProxies []string
}

const (
	defaultStoreWait     = 8 * time.Second
	defaultDrawerEntries = 200
	defaultDrawerBytes   = 4 << 20
	defaultDrawerBody    = 64 << 10
)

// Receiver answers senders. It is an http.Handler, safe for concurrent use.
type Receiver struct {
	http.Handler

	sources  func(string) (Source, bool)
	inbox    Inbox
	clock    func() time.Time
	log      zerolog.Logger
	readyNow func() error
	told     func(Rejected)
	pairing  Pairing

	settings atomic.Pointer[settings]
	budget   *budget
	patience *patience
	drawer   *drawer
	hush     *hush // lines about failed requests, by peer
	trouble  *hush // lines about our own trouble
	stopping atomic.Bool

	endpoints sync.Map // source name → *endpoint
	strangers tally    // requests that name no source
}

// settings are Settings, compiled.
type settings struct {
	keep    []string
	proxies []netip.Prefix
}

// endpoint is what the receiver keeps beside a source: its counters for ever,
// its header filter until the source or the settings change.
type endpoint struct {
	tally  tally
	pace   pace
	filter atomic.Pointer[boundFilter]
}

type boundFilter struct {
	*filter
	source   Source
	settings *settings
}

// New makes a Receiver. It fails when a required option is missing or a
// trusted proxy can not be read.
func New(o Options) (*Receiver, error) {
	if o.Sources == nil || o.Inbox == nil || o.Clock == nil {
		return nil, errors.New("receiver: sources, inbox and clock are required")
	}
	v := &Receiver{
		sources:  o.Sources,
		inbox:    o.Inbox,
		clock:    o.Clock,
		log:      o.Log,
		readyNow: o.Ready,
		told:     o.Rejected,
		pairing:  o.Pairing,
		budget:   newBudget(orDefault(o.Memory, defaultMemory)),
		patience: newPatience(orDefault(o.StoreWait, defaultStoreWait)),
		drawer: newDrawer(orDefault(o.DrawerEntries, defaultDrawerEntries),
			orDefault(o.DrawerBytes, defaultDrawerBytes), orDefault(o.DrawerBody, defaultDrawerBody)),
		hush:    newHush(),
		trouble: newHush(),
	}
	if err := v.Apply(o.Settings); err != nil {
		return nil, err
	}
	v.Handler = v.routes()
	return v, nil
}

func orDefault[T int | int64 | time.Duration](value, fallback T) T {
	if value <= 0 {
		return fallback
	}
	return value
}

// Apply puts new settings in force, whole, or changes nothing and says why.
func (v *Receiver) Apply(s Settings) error {
	proxies, err := ParseProxies(s.TrustedProxies)
	if err != nil {
		return err
	}
	v.settings.Store(&settings{keep: s.KeepHeaders, proxies: proxies})
	return nil
}

// Stop makes every later request get 503 with Retry-After on a connection
// that ends. Requests that are in work are finished.
func (v *Receiver) Stop() { v.stopping.Store(true) }

// Counts gives the counters of all sources that had a request, and those of
// requests that named none, under "".
func (v *Receiver) Counts() []Counts {
	all := []Counts{v.strangers.snapshot("")}
	v.endpoints.Range(func(name, found any) bool {
		one := found.(*endpoint)
		counts := one.tally.snapshot(name.(string))
		counts.Latency, counts.Last = one.pace.answers.Read(), one.pace.lastReceipt()
		all = append(all, counts)
		return true
	})
	return all
}

// Rejected lists up to limit requests that failed verification, the newest
// first; 0 lists all that the drawer holds.
func (v *Receiver) Rejected(limit int) []Rejected { return v.drawer.list(limit) }

// RejectedByID finds one request in the drawer; it may have fallen out.
func (v *Receiver) RejectedByID(id int64) (Rejected, bool) { return v.drawer.get(id) }

// Memory is how many bytes of bodies are held now.
func (v *Receiver) Memory() int64 { return v.budget.used.Load() }

// endpointOf finds what is kept beside a source that is configured.
func (v *Receiver) endpointOf(name string) *endpoint {
	if found, ok := v.endpoints.Load(name); ok {
		return found.(*endpoint)
	}
	found, _ := v.endpoints.LoadOrStore(name, &endpoint{pace: newPace()})
	return found.(*endpoint)
}

// filterOf gives the header filter of a source under the current settings.
func (v *Receiver) filterOf(e *endpoint, src Source) *filter {
	current := v.settings.Load()
	bound := e.filter.Load()
	if bound == nil || bound.source != src || bound.settings != current {
		bound = &boundFilter{newFilter(current.keep, src.SecretHeaders()), src, current}
		e.filter.Store(bound)
	}
	return bound.filter
}
