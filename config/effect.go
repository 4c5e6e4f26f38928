package config

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
)

// paramName is a name that SQLite reads behind a colon.
var paramName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// effects checks the names that a rule gives to what it stores, and how it
// fetches. Templates and amounts are read where they are understood.
func (v *validator) effects(at string, r *Rule) {
	if r.Record != nil {
		if r.Record.Kind != "" {
			v.name(Join(at, "record", "kind"), r.Record.Kind)
		}
		v.fieldNames(Join(at, "record", "fields"), r.Record.Fields)
	}
	if r.State != nil {
		v.fieldNames(Join(at, "state", "fields"), r.State.Fields)
	}
	if r.SQL != nil {
		for _, name := range sortedKeys(r.SQL.Params) {
			if !paramName.MatchString(name) {
				v.fault(Join(at, "sql", "params", name), strconv.Quote(name)+" is not the name of a parameter", "use letters, digits and underscores, a letter first")
			}
		}
	}
	if r.Fetch != nil {
		v.fetch(Join(at, "fetch"), r.Fetch)
	}
}

func (v *validator) fieldNames(at string, fields map[string]string) {
	for _, name := range sortedKeys(fields) {
		v.name(Join(at, name), name)
	}
}

func (v *validator) fetch(at string, f *Fetch) {
	for _, name := range sortedKeys(f.Headers) {
		path := Join(at, "headers", name)
		switch {
		case !headerName.MatchString(name):
			v.fault(path, "is not the name of a header", "use letters, digits and hyphens")
		case http.CanonicalHeaderKey(name) == "Authorization" && !f.Token.IsZero():
			v.fault(path, "stands beside token, which is sent as Authorization too", "keep one of them")
		}
	}
	if f.Timeout > v.cfg.Worker.Timeout {
		v.warn(Join(at, "timeout"), fmt.Sprintf("%s is longer than the worker's timeout of %s, which ends the rules first", f.Timeout, v.cfg.Worker.Timeout), "")
	}
}
