package config

import (
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Percent is a share, written with its sign: "5%".
type Percent float64

// errPercent says how a share is written.
var errPercent = fmt.Errorf(`a share is a number above 0, up to 100, and a percent sign, such as "5%%" or "0.5%%"`)

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Percent) UnmarshalText(text []byte) error {
	digits, signed := strings.CutSuffix(string(text), "%")
	n, err := strconv.ParseFloat(digits, 64)
	if !signed || err != nil || leading(digits, "0123456789.") != digits || n <= 0 || n > 100 {
		return errPercent
	}
	*p = Percent(n)
	return nil
}

// String writes the share as it is read.
func (p Percent) String() string { return strconv.FormatFloat(float64(p), 'f', -1, 64) + "%" }

// MarshalText implements encoding.TextMarshaler.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Signals are the thresholds at which signals fire. What a source may say
// differently stands in SourceSignals.
type Signals struct {
	Oldest      Duration `toml:"oldest"`                                    // how long work may be past due
	DeadLetters int      `toml:"dead_letters" min:"1" max:"1000000"`        // new ones within an hour
	Duplicates  Percent  `toml:"duplicates"`                                // share of a source's events within an hour
	Rejects     int      `toml:"signature_failures" min:"1" max:"1000000"`  // within an hour, and five times what is usual
	Failures    int      `toml:"processing_failures" min:"1" max:"1000000"` // attempts at events within an hour that have to be made again
	Guesses     int      `toml:"login_failures" min:"1" max:"1000000"`      // wrong passwords and tokens within an hour
	DiskFree    Size     `toml:"disk_free" zero:"ok"`                       // fires under it
	WALSize     Size     `toml:"wal_size" zero:"ok"`
}

// SourceSignals are the thresholds of one source; what is absent is that of
// [signals].
type SourceSignals struct {
	Silence     *Duration `toml:"silence"` // twice the usual gap where it is absent; "0s" switches it off
	DeadLetters *int      `toml:"dead_letters" min:"1" max:"1000000"`
	Duplicates  *Percent  `toml:"duplicates"`
	Rejects     *int      `toml:"signature_failures" min:"1" max:"1000000"`
	Failures    *int      `toml:"processing_failures" min:"1" max:"1000000"`
}

// SignalsOf are the thresholds that hold for a source.
func (c *Config) SignalsOf(s *Source) Signals {
	out, own := c.Signals, s.Signals
	if own.DeadLetters != nil {
		out.DeadLetters = *own.DeadLetters
	}
	if own.Duplicates != nil {
		out.Duplicates = *own.Duplicates
	}
	if own.Rejects != nil {
		out.Rejects = *own.Rejects
	}
	if own.Failures != nil {
		out.Failures = *own.Failures
	}
	return out
}

func defaultSignals() Signals {
	return Signals{Oldest: Duration(15 * time.Minute), DeadLetters: 5, Duplicates: 5, Rejects: 20, Failures: 20, Guesses: 20,
		DiskFree: 256 << 20, WALSize: 128 << 20}
}

// AlertDestination is the destination that a recipient of alerts names; "" for
// a mail address.
func AlertDestination(to string) string {
	name, named := strings.CutPrefix(to, "destination:")
	if !named {
		return ""
	}
	return name
}

// alerts checks who is told. A folder has no names of files for them.
func (v *validator) alerts() {
	a := v.cfg.Alerts
	seen := map[string]bool{}
	for i, to := range a.To {
		at := Item("alerts.to", i)
		if seen[to] {
			v.fault(at, strconv.Quote(to)+" is named twice", "each is told once")
		}
		seen[to] = true
		if name := AlertDestination(to); name != "" {
			v.reference(at, "destination", name, sortedKeys(v.cfg.Destinations))
			if d, known := v.cfg.Destinations[name]; known && d.Kind() == ToFolder {
				v.fault(at, fmt.Sprintf("%q is a folder", name), "name a destination with a url or a command")
			}
			continue
		}
		if _, err := mail.ParseAddress(to); err != nil {
			v.fault(at, strconv.Quote(to)+" is not a mail address", `write "owner@example.com" or "destination:NAME"`)
		} else if v.cfg.SMTP.Host == "" {
			v.fault(at, "there is no server to send mail to", `write host and from in [smtp], or name a "destination:NAME"`)
		}
	}
	if a.Heartbeat == "" {
		return
	}
	u, err := url.Parse(a.Heartbeat) // not shown: it may be all that a stranger needs to keep it quiet
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		v.fault("alerts.heartbeat", "is not a URL", `write the whole address, such as "https://hc-ping.com/…"`)
	}
}

// DeliversTo tells whether sources or rules deliver events to a destination.
func (c *Config) DeliversTo(name string) bool {
	for i := range c.Sources {
		if slices.Contains(c.Sources[i].Forward, name) {
			return true
		}
	}
	for i := range c.Rules {
		if slices.Contains(c.Rules[i].destinations(), name) {
			return true
		}
	}
	return false
}
