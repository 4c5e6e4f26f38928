package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Level is how much a problem matters. People see them in this order.
type Level string

const (
	LevelError   Level = "error"   // it stops the start
	LevelWarning Level = "warning" // it is worth a look
	LevelNote    Level = "note"    // it is good to know, and there is nothing to do
)

// Problem is one thing that is wrong with a configuration, with its place and
// what to do about it. A Warning does not stop the start, and neither does a
// Note.
type Problem struct {
	File    string `json:"file,omitempty"` // the file as it was named; "" for the environment
	Line    int    `json:"line,omitempty"` // 1, 2, …; 0 where it can not be told
	Path    string `json:"path,omitempty"` // the key path, as source[0].verify.signed
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Warning bool   `json:"-"` // as the level
	Note    bool   `json:"-"`
	// Unresolved marks a secret that could not be read where this program
	// runs. A command that needs no secrets may go on.
	Unresolved bool `json:"unresolved,omitempty"`
}

// Level is how much the problem matters.
func (p Problem) Level() Level {
	switch {
	case p.Note:
		return LevelNote
	case p.Warning:
		return LevelWarning
	}
	return LevelError
}

// MarshalJSON writes the level first.
func (p Problem) MarshalJSON() ([]byte, error) {
	type plain Problem
	return json.Marshal(struct {
		Level Level `json:"level"`
		plain
	}{p.Level(), plain(p)})
}

// String writes the problem on one line: creel.toml:12: path: message (hint).
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if level := p.Level(); level != LevelError {
		b.WriteString(string(level) + ": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems is everything that is wrong with a configuration at once, warnings
// and notes included. As an error it prints one problem a line.
type Problems []Problem

// Error implements error. Use Err to get an error only where there is one.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns the problems that stop the start as an error, or nil.
// errors.As finds them as Problems again.
func (ps Problems) Err() error {
	if faults := ps.Faults(); len(faults) > 0 {
		return faults
	}
	return nil
}

// Faults returns the problems that stop the start.
func (ps Problems) Faults() Problems { return ps.of(LevelError) }

// Warnings returns those that do not, and are worth a look.
func (ps Problems) Warnings() Problems { return ps.of(LevelWarning) }

// Notes returns those about which there is nothing to do.
func (ps Problems) Notes() Problems { return ps.of(LevelNote) }

func (ps Problems) of(level Level) Problems {
	return ps.filter(func(p Problem) bool { return p.Level() == level })
}

// Resolved returns the problems without those about secrets that could not be
// read here.
func (ps Problems) Resolved() Problems {
	return ps.filter(func(p Problem) bool { return !p.Unresolved })
}

// Sorted returns the problems in the order of the file, each once: those of
// the environment first, then by line and key path.
func (ps Problems) Sorted() Problems {
	out := slices.Clone(ps)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.CompactFunc(out, func(a, b Problem) bool {
		return a.File == b.File && a.Line == b.Line && a.Path == b.Path && a.Message == b.Message
	})
}

// MarshalJSON writes a list, empty and never null where there is none.
func (ps Problems) MarshalJSON() ([]byte, error) {
	return json.Marshal(append([]Problem{}, ps...))
}

func (ps Problems) filter(keep func(Problem) bool) Problems {
	var out Problems
	for _, p := range ps {
		if keep(p) {
			out = append(out, p)
		}
	}
	return out
}

// Join writes the path of a key inside a table, quoted where TOML needs that.
func Join(table string, keys ...string) string {
	for _, key := range keys {
		if !bare(key) {
			key = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(key) + `"`
		}
		if table != "" {
			table += "."
		}
		table += key
	}
	return table
}

// Item writes the path of an element of a list.
func Item(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// bare tells whether TOML takes a key without quotes.
func bare(key string) bool {
	for _, r := range key {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-') {
			return false
		}
	}
	return key != ""
}
