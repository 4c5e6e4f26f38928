package config

import "time"

// Default returns what holds where a file says nothing. Every default of the
// configuration stands in this file.
func Default() *Config {
	return &Config{
		Listen:         "127.0.0.1:8080",
		Database:       "creel.db",
		Grace:          Duration(10 * time.Second),
		MinFree:        64 << 20,
		MaxConnections: 2048,
		Admin:          Admin{Listen: "127.0.0.1:8081"},
		Log:            Log{Level: "info", Format: "auto"},
		Worker:         Worker{Retry: "default", Batch: 256, Timeout: Duration(10 * time.Second)},
		Destinations:   map[string]Destination{},
		Retries:        map[string]Retry{},
	}
}

// DefaultSource returns a source without a name. What stays empty or 0 comes
// from its preset: MaxBody, BodyWindow.
func DefaultSource() Source {
	return Source{Mode: "any", DuplicateStatus: 200, RejectStatus: 401, ProbeStatus: 200}
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
	}
}

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

func (s *Source) setDefaults()      { *s = DefaultSource() }
func (d *Destination) setDefaults() { *d = DefaultDestination() }
