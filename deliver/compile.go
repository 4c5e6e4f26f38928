package deliver

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"creel/config"
)

// mostInFlight bounds max_in_flight: each attempt holds a socket.
const mostInFlight = 1024

// compiler collects every problem of one destination.
type compiler struct {
	prefix   string
	env      config.Environment
	problems config.Problems
	// The settings of a destination and how templates name them.
	settings     map[string]string
	settingNames []string
}

func (c *compiler) fault(key, message, hint string) {
	c.problems = append(c.problems, config.Problem{Path: c.prefix + "." + key, Message: message, Hint: hint})
}

func (c *compiler) warn(key, message, hint string) {
	c.problems = append(c.problems, config.Problem{Path: c.prefix + "." + key, Message: message, Hint: hint, Warning: true})
}

// resolve reads a secret and reports why it can not be read.
func (c *compiler) resolve(key string, secret config.Secret) ([]byte, bool) {
	plain, err := secret.Resolve(c.env)
	if err == nil {
		return plain, true
	}
	problem := config.Problem{Path: c.prefix + "." + key, Message: err.Error(), Unresolved: true}
	var reason *config.SecretError
	if errors.As(err, &reason) {
		problem.Hint = reason.Hint
	}
	c.problems = append(c.problems, problem)
	return nil, false
}

// place takes the URL apart: user information becomes a header, so that the
// URL that is kept can be shown.
func (c *compiler) place(d *Destination, text string) {
	const example = `write the whole address, as "http://127.0.0.1:3000/webhooks"`
	if text == "" {
		c.fault("url", "the destination has no url", example)
		return
	}
	template := ""
	if strings.ContainsAny(text, "{}") {
		template = text
		if text = c.address(d, template); text == "" {
			d.place = shownTemplate(template)
			return
		}
	}
	u, err := url.Parse(text)
	if err != nil {
		c.fault("url", "the url can not be read", example) // the error quotes the text, which may hold a password
		return
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		c.fault("url", "the url does not start with http:// or https://", example)
		return
	case u.Hostname() == "":
		c.fault("url", "the url names no host", example)
		return
	case !isPort(u.Port()):
		c.fault("url", "the url's port is not between 1 and 65535", example)
		return
	}
	if u.Fragment != "" {
		c.warn("url", "what follows # is never sent", "remove it")
		u.Fragment, u.RawFragment = "", ""
	}
	if u.User != nil {
		password, _ := u.User.Password()
		pair := u.User.Username() + ":" + password
		d.own.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
		d.credential(password)
		d.credential(d.own.Get("Authorization"))
		u.User = nil
	}
	d.hide(u.RawQuery)
	for _, values := range u.Query() {
		d.hide(values...)
	}
	d.url, d.place = u, shownURL(u)
	if template != "" {
		d.place = shownTemplate(template)
	}
	if d.address != nil {
		d.address.scheme, d.address.host = u.Scheme, u.Host
	}
	if u.Scheme == "http" && !isLocal(u.Hostname()) {
		c.warn("url", "the bodies travel unencrypted to another machine", "use https:// where the network is not yours alone")
	}
}

// target makes the request line and the Host of every request. The URL and the
// header are read by then; what net/http will not write is a fault.
func (c *compiler) target(d *Destination) {
	if d.url == nil || d.address != nil && d.address.free {
		return
	}
	t, err := newTarget(d.method, d.url, "")
	if err != nil {
		c.fault("url", "the url's host or path can not be sent in a request", "look for characters that no address has")
		return
	}
	if d.host != "" {
		if t, err = newTarget(d.method, d.url, d.host); err != nil {
			c.fault(config.Join("headers", "Host"), "the value is no host", `write it as "app.example.com"`)
			return
		}
	}
	d.target = t
}

func (c *compiler) secret(d *Destination, secret config.Secret) {
	if secret.IsZero() && d.draft == nil && d.method != http.MethodGet {
		c.warn("secret", "the deliveries are not signed: the destination can not tell them from forged ones",
			`set a secret such as "env:APP_WEBHOOK_SECRET" and verify it there as Standard Webhooks`)
	}
	if secret.IsZero() {
		return
	}
	plain, ok := c.resolve("secret", secret)
	if !ok {
		return
	}
	key, err := signingKey(plain)
	if err != nil {
		c.fault("secret", err.Error(), `make one with: printf 'whsec_%s\n' "$(openssl rand -base64 32)"`)
		return
	}
	for _, warning := range secret.Warnings(c.env) {
		c.warn("secret", warning, "")
	}
	if !strings.HasPrefix(string(plain), secretPrefix) && looksEncoded(string(plain)) {
		c.warn("secret", "the secret looks like base64 but is used as the text it is, because it has no whsec_ in front",
			"write whsec_ before it if the destination uses a Standard Webhooks library")
	}
	d.signer = newSigner(key)
	d.hide(string(plain))
}

func looksEncoded(text string) bool {
	key, err := decodeBase64(text)
	return err == nil && len(key) >= leastKey && len(key) <= mostKey
}

func (c *compiler) times(d *Destination, cfg config.Destination) {
	d.timeout = c.duration("timeout", cfg.Timeout, defaultTimeout, time.Hour)
	d.connect = c.duration("connect_timeout", cfg.ConnectTimeout, defaultConnect, time.Hour)
	d.maxRetryAfter = c.duration("max_retry_after", cfg.MaxRetryAfter, defaultMaxRetryAfter, 31*24*time.Hour)
	d.connect = min(d.connect, d.timeout)
	if cfg.Rate < 0 {
		c.fault("rate", "the rate is below zero", `write it as "50/s", or leave it out for no limit`)
	}
}

func (c *compiler) duration(key string, value config.Duration, otherwise, most time.Duration) time.Duration {
	switch d := time.Duration(value); {
	case d == 0:
		return otherwise
	case d < time.Millisecond:
		c.fault(key, "the time is under a millisecond", fmt.Sprintf("write it with its unit, as %q", otherwise))
	case d > most:
		c.fault(key, fmt.Sprintf("the time is over %s", most), fmt.Sprintf("the default is %q", otherwise))
	default:
		return d
	}
	return otherwise
}

func (c *compiler) doubt(d *Destination, text string) {
	switch text {
	case "", "retry":
	case "review":
		d.review = true
	default:
		c.fault("on_doubt", strconv.Quote(text)+" is not known", `write "retry" or "review"`)
	}
}

func (c *compiler) inFlight(n int) int {
	switch {
	case n == 0:
		return defaultInFlight
	case n < 0 || n > mostInFlight:
		c.fault("max_in_flight", fmt.Sprintf("%d is not between 1 and %d", n, mostInFlight),
			fmt.Sprintf("the default is %d", defaultInFlight))
		return defaultInFlight
	}
	return n
}

func (c *compiler) passed(d *Destination, names []string) {
	d.pass = map[string]bool{}
	for i, name := range names {
		key := config.Item("pass_headers", i)
		switch canonical := http.CanonicalHeaderKey(name); {
		case !isToken(name):
			c.fault(key, strconv.Quote(name)+" is not the name of a header", "use letters, digits and hyphens")
		case neverPassed[canonical]:
			c.fault(key, name+" belongs to one connection and is made anew for each", "remove it")
		default:
			d.pass[canonical] = true
		}
	}
}

// headers takes the destination's own headers. They stand after ours, so that
// the owner has the last word; one that would undo the delivery's identity is
// worth a warning.
func (c *compiler) headers(d *Destination, headers map[string]config.Secret) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		key := config.Join("headers", name)
		canonical := http.CanonicalHeaderKey(name)
		plain, ok := c.resolve(key, headers[name])
		switch {
		case !ok:
		case !isToken(name):
			c.fault(key, strconv.Quote(name)+" is not the name of a header", "use letters, digits and hyphens")
		case canonical != "Host" && neverPassed[canonical]:
			c.fault(key, name+" belongs to the connection and can not be set", "remove it")
		case !isFieldValue(string(plain)):
			c.fault(key, "the value has a character that no header can carry", "look for a line end inside it")
		case canonical == "Host":
			d.host = string(plain)
		default:
			if isOurs(canonical) {
				c.warn(key, name+" replaces the value that each delivery gets", "remove it unless that is what you want")
			}
			d.own[canonical] = []string{string(plain)}
			if headers[name].Literal() && strings.ContainsAny(string(plain), "{}") {
				c.headerTemplate(d, key, canonical, string(plain))
			}
			if !headers[name].Literal() || canonical == "Authorization" || canonical == "Cookie" {
				d.credential(string(plain))
			}
		}
	}
}

// headerTemplate takes a header that is a template; one that only settings are
// filled into is the same for every shipment.
func (c *compiler) headerTemplate(d *Destination, key, name, text string) {
	words := c.wording(key, text)
	if value, ok := words.fixed(); ok {
		d.own[name] = []string{value}
		return
	}
	d.own[name] = nil
	d.worded = append(d.worded, headerWords{name: name, key: key, value: words})
}

func isPort(text string) bool {
	if text == "" {
		return true
	}
	port, err := strconv.Atoi(text)
	return err == nil && port >= 1 && port <= 65535
}
