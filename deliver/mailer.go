package deliver

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/mail"
	"time"

	"creel/config"
	"creel/event"
)

// Mailer makes attempts at one SMTP server: one mail to one recipient each,
// over a connection of its own. It is safe for concurrent use.
type Mailer struct {
	address  string // host:port that is dialled
	host     string // that the certificate has to carry
	from     mail.Address
	domain   string // of from, in ASCII
	username string
	password string
	security security
	asked    string // smtp.tls as the owner set it
	hello    string // "" is the address that the connection comes from
	tls      *tls.Config
	timeout  time.Duration
	connect  time.Duration
	silence  time.Duration // without a greeting, before the port is suspected
	inFlight int
	rate     float64
	review   bool
	mask
	clock func() time.Time
}

// InFlight is how many attempts may run at once.
func (m *Mailer) InFlight() int { return m.inFlight }

// Rate is how many attempts may start in a second; 0 is no limit.
func (m *Mailer) Rate() float64 { return m.rate }

// Review tells whether a mail whose answer was lost waits for a person instead
// of being repeated.
func (m *Mailer) Review() bool { return m.review }

// Attempt sends the mail of a shipment once and waits for the server's word on
// it, at most the timeout. now is the attempt's start. It never returns an
// error of its own: what went wrong is in the result, the code of the server's
// refusal in its status.
func (m *Mailer) Attempt(ctx context.Context, s event.Shipment, now time.Time) Result {
	began := m.clock()
	spoken := m.exchange(ctx, &s, now)
	result := Result{
		Attempt: event.Attempt{
			Delivery: s.ID,
			Run:      s.Run,
			Number:   s.Tries,
			Spent:    !s.Probe,
			Start:    now,
			Duration: max(m.clock().Sub(began), 0),
			Status:   spoken.Status,
			Outcome:  Classify(spoken.Reply),
			Answer:   printable(m.masked(spoken.words), mostKept),
		},
		Wrote: spoken.Wrote,
	}
	if result.Attempt.Outcome != event.OK {
		result.Attempt.Error = m.failure(&spoken)
		result.Alive = spoken.isAboutTheMail()
	}
	return result
}

// exchange makes the mail and sends it.
func (m *Mailer) exchange(ctx context.Context, s *event.Shipment, now time.Time) spoken {
	var text event.MailText
	if err := json.Unmarshal([]byte(s.Message), &text); err != nil {
		return unsendable(fmt.Errorf("its stored text can not be read: %w", err))
	}
	letter, err := m.compose(s, text, now)
	if err != nil {
		return unsendable(err)
	}
	return m.send(ctx, letter)
}

func unsendable(err error) spoken {
	return spoken{Reply: Reply{Err: err, Unsendable: true, SMTP: true}}
}

// NewMailer compiles the configuration of the mail server; prefix is the key
// path of its table. Without a fault among the problems the mailer is usable;
// with one it is nil.
func NewMailer(cfg config.SMTP, prefix string, opt Options) (*Mailer, config.Problems) {
	if opt.Clock == nil {
		return nil, config.Problems{{Path: prefix, Message: errNoClock.Error()}}
	}
	c := mailCompiler{compiler{prefix: prefix, env: opt.Env}}
	m := &Mailer{clock: opt.Clock, rate: float64(cfg.Rate), silence: longestSilence}
	c.server(m, cfg.Host)
	c.sender(m, cfg.From)
	c.login(m, cfg)
	c.secure(m, cfg.TLS, opt)
	c.greeting(m, cfg.Hello)
	m.timeout = c.duration("timeout", cfg.Timeout, defaultMailTimeout, time.Hour)
	m.connect = min(defaultMailConnect, m.timeout)
	m.silence = min(m.silence, m.timeout/2)
	m.inFlight = c.inFlight(cfg.MaxInFlight)
	m.review = c.review(cfg.OnDoubt)
	if len(c.problems.Faults()) > 0 {
		return nil, c.problems
	}
	return m, c.problems
}
