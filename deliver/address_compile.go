package deliver

import (
	"net/url"
	"strings"

	"creel/config"
)

// address compiles a URL that is a template. It returns the URL where no value
// of a shipment takes part in it, or as much of it as is the same for every
// shipment.
func (c *compiler) address(d *Destination, text string) (fixed string) {
	const example = `such as "https://api.example.com/orders/{body.id}"`
	words := c.wording("url", text)
	if len(words.pieces) == 0 {
		return ""
	}
	if whole, ok := words.fixed(); ok {
		return whole
	}
	for _, piece := range words.pieces {
		if strings.Contains(piece.Literal, "#") {
			c.fault("url", "what follows # is never sent", "remove it")
			return ""
		}
	}
	first := words.pieces[0].Literal
	a := &addressWords{words: words, free: stageOf(first) < inPath}
	if a.free {
		if first != "" && !strings.HasPrefix(first, "http://") && !strings.HasPrefix(first, "https://") {
			c.fault("url", "the url does not start with http:// or https://", example)
			return ""
		}
		c.freeAddress(d, a)
		return ""
	}
	scheme, rest, _ := strings.Cut(first, "://")
	end := strings.IndexAny(rest, "/?")
	host, way := rest[:end], rest[end:]
	words.pieces[0].Literal = scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + way // the user travels as a header
	d.address = a
	if _, query, asks := strings.Cut(text, "?"); asks {
		d.hideQuery(query)
	}
	return scheme + "://" + host
}

// freeAddress is for a URL whose host or port an event decides.
func (c *compiler) freeAddress(d *Destination, a *addressWords) {
	d.address = a
	d.url = &url.URL{Scheme: "http", Host: someAddress}
	if strings.Contains(a.words.pieces[0].Literal, "@") {
		c.fault("url", "has a user before a host that the event decides", "set headers instead: Authorization = \"env:NAME\"")
	}
}

// someAddress stands in errors for a host that an event named.
const someAddress = "the address"

// exposed warns of what hides in requests that go to whomever an event names.
func (c *compiler) exposed(d *Destination, cfg *config.Destination) {
	if d.address == nil || !d.address.free {
		return
	}
	const hint = "write the host in the url, or leave the secret out"
	for _, name := range sorted(cfg.Headers) {
		if !cfg.Headers[name].Literal() {
			c.warn(config.Join("headers", name), "the event decides to which host this secret is sent", hint)
		}
	}
	for _, name := range sorted(cfg.Settings) {
		if !cfg.Settings[name].Literal() {
			c.warn(config.Join("settings", name), "the event decides to which host this secret is sent", hint)
		}
	}
}

// shownTemplate is a URL that is a template as it may be shown: without its
// query and a user.
func shownTemplate(text string) string {
	shown, _, asks := strings.Cut(text, "?")
	if scheme, rest, ok := strings.Cut(shown, "://"); ok {
		host, way, slash := strings.Cut(rest, "/")
		if shown = scheme + "://" + host[strings.LastIndexByte(host, '@')+1:]; slash {
			shown += "/" + way
		}
	}
	if asks {
		shown += "?…"
	}
	return shown
}
