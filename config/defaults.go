package config

import "time"

// Default returns what holds where a file says nothing. Every default of the
// configuration stands in this file.
func Default() *Config {
	return &Config{
		Listen:         "127.0.0.1:8080",
		Database:       "creel.db",
		Grace:          Duration(10 * time.Second),
		Retention:      Duration(90 * 24 * time.Hour),
		MinFree:        64 << 20,
		MaxConnections: 2048,
		Admin:          Admin{Listen: "127.0.0.1:8081"},
		Log:            Log{Level: "info", Format: "auto"},
		Worker:         Worker{Retry: "default", Batch: 256, Timeout: Duration(10 * time.Second), Slow: 8},
		SMTP: SMTP{TLS: "auto", Timeout: Duration(30 * time.Second), Retry: "default", MaxInFlight: 4,
			OnDoubt: "retry"},
		Alerts:       Alerts{Wait: Duration(10 * time.Second), HeartbeatEvery: Duration(time.Minute)},
		Signals:      defaultSignals(),
		Destinations: map[string]Destination{},
		Retries:      map[string]Retry{},
		SQL:          OwnSQL{Timeout: Duration(2 * time.Second)},
	}
}

// DefaultSource returns a source without a name. What stays empty or 0 comes
// from its preset: MaxBody, BodyWindow.
func DefaultSource() Source {
	return Source{Mode: "any", DuplicateStatus: 200, RejectStatus: 401, ProbeStatus: 200, Process: "queue"}
}

// DefaultDestination returns a destination without a URL.
func DefaultDestination() Destination {
	return Destination{
		Timeout:        Duration(10 * time.Second),
		ConnectTimeout: Duration(3 * time.Second),
		Retry:          "default",
		MaxInFlight:    8,
		OnDoubt:        "retry",
		MaxRetryAfter:  Duration(24 * time.Hour),
		Method:         "POST",
		Payload:        "stdin",
		Mode:           "0600",
	}
}

// fillDefaults fills in what depends on the kind of a destination. A send over
// HTTP carries an identity by which a second one is known; a command may not
// look at it, so that one whose end was not seen waits for a person. Each run
// of a command is a process, of which a small machine bears few.
func (d *Destination) fillDefaults() {
	plain := DefaultDestination()
	if d.Kind() == ToCommand {
		plain.OnDoubt, plain.Timeout, plain.MaxInFlight = "review", Duration(time.Minute), 2
	}
	if d.OnDoubt == "" {
		d.OnDoubt = plain.OnDoubt
	}
	if d.Timeout == 0 {
		d.Timeout = plain.Timeout
	}
	if d.MaxInFlight == 0 {
		d.MaxInFlight = plain.MaxInFlight
	}
}

// DefaultFetch returns a fetch without a URL.
func DefaultFetch() Fetch { return Fetch{Into: "body", Timeout: Duration(5 * time.Second)} }

// fillDefaults fills in what holds where a policy of growing delays says
// nothing. A list of delays has no such defaults.
func (r *Retry) fillDefaults() {
	if len(r.Delays) > 0 {
		return
	}
	if r.Factor == 0 {
		r.Factor = 2
	}
	if r.Max == 0 {
		r.Max = Duration(time.Hour)
	}
}

// RetryNames lists the retry policies that exist without being configured.
func RetryNames() []string { return []string{"default", "patient", "quick"} }

func (f *Fetch) setDefaults()  { *f = DefaultFetch() }
func (s *Source) setDefaults() { *s = DefaultSource() }
func (d *Destination) setDefaults() {
	*d = DefaultDestination()
	d.OnDoubt, d.Timeout, d.MaxInFlight = "", 0, 0 // see fillDefaults
}
