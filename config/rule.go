package config

import (
	"errors"
	"strconv"
)

// Rule says what happens to an event.
type Rule struct {
	Name    string     `toml:"name"`
	Match   Match      `toml:"match"`
	When    string     `toml:"when"`
	Key     string     `toml:"key"`
	OrderBy string     `toml:"order_by"`                   // template of the lane: events that share it apply one after another
	OnDead  string     `toml:"on_dead" oneof:"block,skip"` // what a dead event does to its lane
	Fetch   *Fetch     `toml:"fetch"`
	Record  *Record    `toml:"record"`
	Grant   *Grant     `toml:"grant"`
	State   *SetState  `toml:"state"`
	SQL     *SQL       `toml:"sql"`
	Email   *Email     `toml:"email"`
	Forward *Forward   `toml:"forward"`
	Run     *Run       `toml:"run"`
	File    *WriteFile `toml:"file"`
	Go      string     `toml:"go"` // name of a handler that a custom binary registered
}

// destinations are those that the rule's effects name.
func (r *Rule) destinations() []string {
	var names []string
	if r.Forward != nil {
		names = append(names, r.Forward.To...)
	}
	if r.Run != nil {
		names = append(names, r.Run.To...)
	}
	if r.File != nil {
		names = append(names, r.File.To...)
	}
	return names
}

// Match selects events by source and type globs.
type Match struct {
	Source StringList `toml:"source"`
	Types  []string   `toml:"types"`
}

// Record is the effect that inserts one row of a kind.
type Record struct {
	Kind   string            `toml:"kind"`
	Fields map[string]string `toml:"fields"` // name: template
}

// Grant is the effect that changes a balance by a row in the ledger.
type Grant struct {
	To      string     `toml:"to"` // template
	Unit    string     `toml:"unit"`
	Amount  Expression `toml:"amount"`
	Reverse string     `toml:"reverse"` // template: the business key of the grant to take back
	Floor   *int64     `toml:"floor"`
}

// SetState is the effect that keeps the current state of an object.
type SetState struct {
	Object   string            `toml:"object"`  // template
	To       string            `toml:"to"`      // template: the new state
	Version  string            `toml:"version"` // template
	From     []string          `toml:"from"`    // the states that may be left; "" is none yet
	OnRefuse string            `toml:"on_refuse" oneof:"retry,stale,dead"`
	Fields   map[string]string `toml:"fields"` // name: template
}

// SQL is the effect that runs statements of the owner's.
type SQL struct {
	Statements StringList        `toml:"statements"`
	Params     map[string]string `toml:"params"` // name: template
}

// OwnSQL is what belongs to the statements of the owner's.
type OwnSQL struct {
	Migrations string   `toml:"migrations"` // a folder of NNNN-name.sql files for tables named app_…
	Timeout    Duration `toml:"timeout"`    // how long the statements of one event may run together
}

// Email is the effect that sends mail.
type Email struct {
	To      StringList `toml:"to"`      // templates
	Subject string     `toml:"subject"` // template
	Text    string     `toml:"text"`    // template
	HTML    string     `toml:"html"`    // template; values are escaped
	// Files that hold the templates instead. Load reads them into Text and HTML.
	TextFile string `toml:"text_file"`
	HTMLFile string `toml:"html_file"`
}

// Forward is the effect that delivers the event to HTTP destinations.
type Forward struct {
	To StringList `toml:"to"`
}

// Run is the effect that runs a command with the event.
type Run struct {
	To     StringList        `toml:"to"`     // destinations with a command
	Fields map[string]string `toml:"fields"` // name: template; CREEL_FIELD_NAME in the environment
}

// WriteFile is the effect that writes the event into a folder.
type WriteFile struct {
	To   StringList `toml:"to"`   // destinations with a folder
	Path string     `toml:"path"` // template
}

// Fetch gets the current object from its provider where an event has no
// version, or the same as the stored one.
type Fetch struct {
	URL     string            `toml:"url"`     // template
	Headers map[string]Secret `toml:"headers"` // such as Authorization
	Token   Secret            `toml:"token"`   // sent as Authorization: Bearer
	Into    string            `toml:"into"`    // the place of the body that the answer takes: body or body.data.object
	Timeout Duration          `toml:"timeout"`
	Always  bool              `toml:"always"` // also where the event has a version
}

// Expression is a whole number, or an expression that gives one.
type Expression string

// ErrExpression says how an amount is written.
var ErrExpression = errors.New(`a whole number such as 100, or an expression such as "body.amount * 2"`)

// UnmarshalTOML implements toml.Unmarshaler.
func (e *Expression) UnmarshalTOML(value any) error {
	switch v := value.(type) {
	case int64:
		*e = Expression(strconv.FormatInt(v, 10))
	case string:
		*e = Expression(v)
	default:
		return ErrExpression
	}
	return nil
}
