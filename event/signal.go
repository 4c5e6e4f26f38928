package event

import (
	"strings"
	"time"
)

// Signal is a measure with a threshold, about a source, a destination or the
// server as a whole. While it fires there is one incident for it.
type Signal struct {
	Name      SignalName `json:"name"`
	Subject   string     `json:"subject,omitempty"` // a source or destination; "" for the server
	Value     float64    `json:"value"`
	Threshold float64    `json:"threshold"` // 0 where it can not fire: it is switched off, or not enough is known
	Unit      string     `json:"unit"`      // seconds, events, deliveries, requests, attempts, logins, percent or bytes
	Firing    bool       `json:"firing"`
	Since     time.Time  `json:"since,omitzero"` // since when it fires
	Note      string     `json:"note,omitempty"` // why it can not fire, or what else has to be known
}

// SignalName is what a signal measures. It is the cause of its incident, and a
// metric label.
type SignalName string

// The signals. The first five are those that an owner looks at first.
const (
	SignalOldest     SignalName = "oldest_unprocessed"  // how long the oldest work is past due
	SignalDead       SignalName = "dead_letters"        // new ones within an hour
	SignalDuplicates SignalName = "duplicates"          // share of a source's events within an hour
	SignalSilence    SignalName = "silence"             // since the last receipt of a source
	SignalGap        SignalName = "reconciliation_gap"  // listed by the provider and not in the inbox
	SignalSuccess    SignalName = "delivery_success"    // share of the attempts of an hour that failed
	SignalRejects    SignalName = "signature_failures"  // within an hour
	SignalFailures   SignalName = "processing_failures" // attempts at events within an hour that will be made again
	SignalGuesses    SignalName = "login_failures"      // wrong passwords and tokens within an hour
	SignalDisk       SignalName = "disk_free"           // bytes; fires under its threshold
	SignalWAL        SignalName = "wal_size"            // bytes
	SignalStore      SignalName = "store_unavailable"   // how long nothing could be written
)

// Signals lists the names, the five first.
func Signals() []SignalName {
	return []SignalName{SignalOldest, SignalDead, SignalDuplicates, SignalSilence, SignalGap,
		SignalSuccess, SignalRejects, SignalFailures, SignalGuesses, SignalDisk, SignalWAL, SignalStore}
}

// Cause is the cause of the incident that a firing signal opens.
func (n SignalName) Cause() Cause { return Cause(n) }

// Rhythm is what is known about the pauses of a source.
type Rhythm struct {
	Source string
	Since  time.Time // since when it is listened to
	Last   time.Time // its last receipt that is counted here; zero where there was none
	// Pauses is how often a pause of each length came, by the day.
	Pauses []Pause
}

// Pause is how often a pause of one length ended on one day (UTC). Length 0
// counts receipts that came without a pause worth the name; of the others it is
// the place in a scale that its reader knows.
type Pause struct {
	Day    int64 // since 1970
	Length int
	N      int64
}

// Gap is what a provider lists for a source and the inbox does not have.
type Gap struct {
	Source  string    `json:"source"`
	At      time.Time `json:"at"` // when it was looked
	Missing int       `json:"missing"`
	From    time.Time `json:"from"` // the span that was compared
	Until   time.Time `json:"until"`
}

// UnitOf is the unit of a signal as it stands behind a value: 1 delivery.
func UnitOf(value float64, unit string) string {
	switch {
	case value != 1:
		return unit
	case unit == "deliveries":
		return "delivery"
	}
	return strings.TrimSuffix(unit, "s")
}
