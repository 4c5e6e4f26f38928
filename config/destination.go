package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kindExamples are the keys that say what a destination is, with what stands behind
// each in an example.
func kindExamples() string {
	return `url = "http://127.0.0.1:3000/webhooks", command = ["/usr/local/bin/print-label"] or folder = "archive"`
}

// mailName is the destination of mail in lists, metrics and the page.
const mailName = "mail"

// DestinationNames lists all that deliveries may go to: the destinations, and
// mail where there is a server for it.
func (c *Config) DestinationNames() []string {
	names := sortedKeys(c.Destinations)
	if c.SMTP.Host != "" {
		names = append(names, mailName)
		slices.Sort(names)
	}
	return names
}

// ownKeys lists the keys that one kind of destination alone reads.
func ownKeys(kind DestinationKind) []string {
	switch kind {
	case ToCommand:
		return []string{"payload", "working_folder", "env"}
	case ToFolder:
		return []string{"mode"}
	}
	return []string{"secret", "connect_timeout", "retry_4xx", "pass_headers", "headers", "max_retry_after", "success",
		"method", "body", "settings", "max_body", "body_url_ttl"}
}

func (v *validator) destination(name string, d Destination) {
	at := Join("destination", name)
	v.name(at, name)
	if name == mailName {
		v.fault(at, "this name belongs to mail", "choose another; the server that mail goes to stands in [smtp]")
	}
	v.retryName(Join(at, "retry"), d.Retry)
	var kinds []string
	for key, given := range map[string]bool{"url": d.URL != "", "command": d.Command != nil, "folder": d.Folder != ""} {
		if given || v.bad[Join(at, key)] {
			kinds = append(kinds, key)
		}
	}
	slices.Sort(kinds)
	switch {
	case len(kinds) == 0:
		v.fault(Join(at, "url"), "is missing", "write one of "+kindExamples())
		return
	case len(kinds) > 1:
		v.fault(at, "has "+strings.Join(kinds, " and "), "a destination is one of them: make a second one")
		return
	}
	kind := DestinationKind(kinds[0])
	v.strayKeys(at, kind, d)
	switch kind {
	case ToCommand:
		v.command(at, d)
	case ToURL:
		v.httpDestination(at, d)
	}
}

// strayKeys finds keys that mean nothing for a destination of a kind.
func (v *validator) strayKeys(at string, kind DestinationKind, d Destination) {
	plain := DefaultDestination()
	given := map[string]bool{
		"payload": d.Payload != plain.Payload, "working_folder": d.WorkingFolder != "", "env": d.Env != nil,
		"mode": d.Mode != plain.Mode, "secret": !d.Secret.IsZero(), "connect_timeout": d.ConnectTimeout != plain.ConnectTimeout,
		"retry_4xx": d.Retry4xx != nil, "pass_headers": d.PassHeaders != nil, "headers": d.Headers != nil, "success": d.Success != nil,
		"max_retry_after": d.MaxRetryAfter != plain.MaxRetryAfter, "method": d.Method != plain.Method, "body": d.Body != nil,
		"settings": d.Settings != nil, "max_body": d.MaxBody != 0, "body_url_ttl": d.BodyURLTTL != 0,
	}
	for _, other := range []DestinationKind{ToURL, ToCommand, ToFolder} {
		for _, key := range ownKeys(other) {
			if given[key] && other != kind {
				v.fault(Join(at, key), fmt.Sprintf("means nothing for a %s", kind), fmt.Sprintf("remove it; it is for a destination with a %s", other))
			}
		}
	}
}

func (v *validator) httpDestination(at string, d Destination) {
	if !strings.ContainsAny(d.URL, "{}") { // a template is read where deliveries are understood
		if u := v.webURL(Join(at, "url"), d.URL, `"http://127.0.0.1:3000/webhooks"`); u != nil && u.User != nil {
			v.warn(Join(at, "url"), "holds a user or password", `put it in headers instead: Authorization = "env:NAME"`)
		}
	}
	v.request(at, d)
	v.success(Join(at, "success"), d.Success)
	if d.ConnectTimeout > d.Timeout {
		v.warn(Join(at, "connect_timeout"), fmt.Sprintf("%s is longer than the timeout of %s, which ends the attempt first", d.ConnectTimeout, d.Timeout), "")
	}
	for _, header := range sortedKeys(d.Headers) {
		if !headerName.MatchString(header) {
			v.fault(Join(at, "headers", header), "is not the name of a header", "use letters, digits and hyphens")
		}
	}
	for i, header := range d.PassHeaders {
		if !headerName.MatchString(header) {
			v.fault(Item(Join(at, "pass_headers"), i), strconv.Quote(header)+" is not the name of a header", "use letters, digits and hyphens")
		}
	}
}

// success checks the statuses that count as sent. 101 hands the connection over
// and is the only final answer under 200.
func (v *validator) success(at string, statuses []int) {
	if statuses != nil && len(statuses) == 0 {
		v.fault(at, "is empty: nothing would ever be sent", "write the statuses, such as [200, 202], or leave it out for 2xx and 409")
	}
	for i, status := range statuses {
		switch place := Item(at, i); {
		case status < 100 || status > 599:
			v.fault(place, fmt.Sprintf("%d is not between 100 and 599", status), "write the statuses, such as [200, 202]")
		case status < 200 && status != 101:
			v.warn(place, fmt.Sprintf("%d is never the final answer", status), "remove it")
		case slices.Contains(statuses[:i], status):
			v.warn(place, fmt.Sprintf("%d stands there twice", status), "remove it")
		}
	}
}

var (
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	// placeholder finds what somebody may have meant to be filled in.
	placeholder = regexp.MustCompile(`\{(body|header|query|form)\.[^{}]+\}|\{(id|type|object|account|tenant|source|version|event)\??\}`)
)

// command checks what can be said without looking at the machine.
func (v *validator) command(at string, d Destination) {
	list := Join(at, "command")
	if len(d.Command) == 0 || d.Command[0] == "" {
		v.fault(list, "names no program", `write its whole path, such as command = ["/usr/local/bin/print-label"]`)
		return
	}
	if !filepath.IsAbs(d.Command[0]) {
		hint := "write its whole path: no search path and no shell finds it"
		if len(d.Command) == 1 && strings.ContainsAny(d.Command[0], " \t") {
			hint = "write the program and each argument as a text of its own: no shell takes a line apart"
		}
		v.fault(Item(list, 0), strconv.Quote(d.Command[0])+" is not an absolute path", hint)
	}
	for i, argument := range d.Command {
		switch place := placeholder.FindString(argument); {
		case strings.ContainsRune(argument, 0):
			v.fault(Item(list, i), "has a NUL character, which no argument can carry", "remove it")
		case place != "":
			v.warn(Item(list, i), place+" is not filled in: the arguments are the same for every event",
				`give the rule fields = { name = "`+place+`" }: the command finds it as CREEL_FIELD_NAME`)
		}
	}
	for _, name := range sortedKeys(d.Env) {
		switch {
		case !variableName.MatchString(name):
			v.fault(Join(at, "env", name), "is not the name of a variable", "use letters, digits and underscores, a letter first")
		case strings.HasPrefix(name, Prefix):
			v.fault(Join(at, "env", name), "is a name that creel itself sets", "variables that begin with CREEL_ tell about the delivery")
		}
	}
}

// to checks the destinations of an effect: they exist and are of its kind.
func (v *validator) to(list string, names StringList, kind DestinationKind) {
	v.destinations(list, names)
	for i, name := range names {
		at := list
		if len(names) > 1 {
			at = Item(list, i)
		}
		d, known := v.cfg.Destinations[name]
		if !known || v.noKind(Join("destination", name)) {
			continue
		}
		if is := d.Kind(); is != kind {
			v.fault(at, WrongKind(name, is, kind), EffectHint(is, name))
		}
	}
}

// noKind tells whether what a destination is could not be read.
func (v *validator) noKind(at string) bool {
	return v.told(at) || slices.ContainsFunc([]DestinationKind{ToURL, ToCommand, ToFolder}, func(kind DestinationKind) bool {
		return v.badBelow(Join(at, string(kind)))
	})
}

// WrongKind says that a destination is not of the kind that an effect wants.
func WrongKind(name string, is, wanted DestinationKind) string {
	return fmt.Sprintf("%q has a %s, and this wants one with a %s", name, is, wanted)
}

// EffectHint says how deliveries to a kind of destination are asked for.
func EffectHint(kind DestinationKind, name string) string {
	switch kind {
	case ToCommand:
		return fmt.Sprintf(`write [rule.run] with to = %q to run it`, name)
	case ToFolder:
		return fmt.Sprintf(`write [rule.file] with to = %q and path = "{source}/{id}.json" to write files there`, name)
	}
	return fmt.Sprintf(`write [rule.forward] with to = %q to send there`, name)
}

func (v *validator) run(at string, r *Run) {
	if len(r.To) == 0 {
		v.fault(Join(at, "to"), "is missing", `name a destination with a command, such as to = "print-label"`)
	}
	v.to(Join(at, "to"), r.To, ToCommand)
	seen := map[string]string{}
	for _, name := range sortedKeys(r.Fields) {
		upper := strings.ToUpper(name)
		switch {
		case !variableName.MatchString(name):
			v.fault(Join(at, "fields", name), "can not stand in the name of a variable", "use letters, digits and underscores, a letter first")
		case seen[upper] != "":
			v.fault(Join(at, "fields", name), fmt.Sprintf("is CREEL_FIELD_%s, as %s is", upper, seen[upper]), "choose another name")
		}
		seen[upper] = name
	}
}

func (v *validator) file(at string, f *WriteFile) {
	if len(f.To) == 0 {
		v.fault(Join(at, "to"), "is missing", `name a destination with a folder, such as to = "archive"`)
	}
	v.to(Join(at, "to"), f.To, ToFolder)
	if f.Path == "" {
		v.fault(Join(at, "path"), "is missing", `write path = "{source}/{id}.json"`)
	}
}
