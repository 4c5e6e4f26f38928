package source

import (
	"slices"
	"strings"

	"creel/config"
	"creel/event"
	"creel/path"
)

// identity compiles where the identities of an event stand.
func (c *compiler) identity(s *scheme, in config.Scheme) {
	if len(in.ID) == 0 {
		c.fault(".verify.id", "says not where the event id stands",
			`such as "body.id" or "header.X-Delivery"; "{type}/{object}/{version}" makes one, "body-sha256" is the body's hash`)
	}
	s.id = c.choice(".verify.id", in.ID, identityWords())
	s.kind = c.choice(".verify.type", in.Type, nil)
	s.account = c.choice(".verify.account", in.Account, nil)
	s.object = c.choice(".verify.object", in.Object, nil)
	s.version = c.choice(".verify.version", in.Version, nil)
	if in.Live != "" {
		s.live = c.place(".verify.live", in.Live, nil)
	}
	for _, text := range in.Volatile {
		p := c.place(".verify.volatile", text, nil)
		if !p.isBody() && !p.isForm() {
			c.fault(".verify.volatile", text+" is not in the body", "only what stands in the body is compared")
		}
		s.volatile = append(s.volatile, p)
	}
	if in.Split != "" {
		split, err := path.ParseSplit(in.Split)
		if err != nil {
			c.fault(".verify.split", err.Error(), `such as "body.events", or "body.entry.*.changes.*"`)
		}
		s.split = split
	}
	if in.Unwrap != "" {
		p, err := path.Parse(in.Unwrap)
		if err == nil && p.Root() != path.Form {
			err = path.ErrBadPath
		}
		if err != nil {
			c.fault(".verify.unwrap", err.Error(), `such as "form.payload"`)
		}
		s.unwrap = p
	}
	s.readsBody = !s.split.IsZero() || !s.unwrap.IsZero() || s.live.isBody() || s.anyIdentity(place.isBody)
	s.readsForm = s.anyIdentity(place.isForm)
}

func (s *scheme) anyIdentity(is func(place) bool) bool {
	for _, c := range []choice{s.id, s.kind, s.account, s.object, s.version} {
		if slices.ContainsFunc(c.places(), is) {
			return true
		}
	}
	return false
}

// places lists every place of a choice.
func (c choice) places() []place {
	var out []place
	for _, t := range c {
		for _, p := range t.pieces {
			if !p.isLiteral() {
				out = append(out, p.place)
			}
		}
	}
	return out
}

// covered holds the account to verified data: who the money belongs to must
// not be readable from a header that anybody can change on a captured request.
func (c *compiler) covered(s *scheme, in config.Scheme) {
	if !s.signs() {
		return
	}
	for _, p := range s.account.places() {
		if !s.covers(p) {
			c.fault(".verify.account", p.text+" is not covered by the signature",
				"the account must come from what is signed; leave it out, or put it into signed")
		}
	}
}

// signs tells whether the scheme proves more than the knowledge of a token.
func (s *scheme) signs() bool { return isMAC(s.auth) || s.rule.asymmetric() || s.auth == "jwt-hs256" }

// covers tells whether changing what stands at a place breaks the signature.
func (s *scheme) covers(p place) bool {
	switch p.kind {
	case fixed, inClaim:
		return true
	case inWord:
		return p.name == "body-sha256" || p.name == "receipt"
	case inLabel:
		return s.signed.reads(p) || s.signed.has("ts") && s.timestamp.reads(p)
	}
	if s.signed.reads(p) || s.signed.has("ts") && s.timestamp.reads(p) {
		return true
	}
	switch {
	case p.isBody() || p.isForm():
		return s.integrity == Full
	case p.kind == inRequest: // query
		return s.signed.has("url") || s.signed.has("path")
	}
	return false
}

func (c choice) reads(p place) bool {
	return slices.ContainsFunc(c, func(t template) bool { return t.reads(p) })
}

// idIsOpen tells whether somebody who captured a request could send it again
// under another id, so that the hash of the body must be a second key.
func (s *scheme) idIsOpen() bool {
	if !s.signs() || s.integrity != Full || s.signed.has("id") {
		return false
	}
	open := func(c choice) bool {
		return slices.ContainsFunc(c.places(), func(p place) bool { return !s.covers(p) && p.kind != inWord })
	}
	for _, t := range s.id {
		if t.has("receipt") {
			return false
		}
		for word, c := range map[string]choice{"type": s.kind, "object": s.object, "version": s.version} {
			if t.has(word) && open(c) {
				return true
			}
		}
	}
	return open(s.id)
}

// Fingerprint names the settings that decide which event is which: changing
// them on a source that has events opens its dedupe again.
func (s *Source) Fingerprint() string {
	in := s.identity
	parts := [][]string{in.ID, in.Account, {in.Split, in.Unwrap}}
	for word, list := range map[string][]string{"type": in.Type, "object": in.Object, "version": in.Version} {
		if slices.ContainsFunc(s.scheme.id, func(t template) bool { return t.has(word) }) {
			parts = append(parts, append([]string{word}, list...))
		}
	}
	slices.SortFunc(parts[3:], slices.Compare)
	lines := make([]string, len(parts))
	for i, part := range parts {
		lines[i] = strings.Join(part, "\x00")
	}
	return event.HashID([]byte(strings.Join(lines, "\x01")))
}
