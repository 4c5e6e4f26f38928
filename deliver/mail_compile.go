package deliver

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"creel/config"
)

const (
	defaultMailTimeout = 30 * time.Second
	defaultMailConnect = 5 * time.Second
	// longestSilence is how long a server may keep silent on a plain connection
	// before it is asked whether it waits for TLS.
	longestSilence = 5 * time.Second
	// implicitPort is the port on which TLS comes first (RFC 8314, 3.3).
	implicitPort = "465"
)

// security is how a connection is protected.
type security string

// The ways of smtp.tls.
const (
	secureAuto     security = "auto"
	secureStartTLS security = "starttls" // demanded: without it nothing is sent
	secureImplicit security = "implicit"
	secureNone     security = "none"
)

// mailCompiler collects every problem of the mail server's table.
type mailCompiler struct{ compiler }

func (c *mailCompiler) server(m *Mailer, text string) {
	const example = `write host:port, as "smtp.example.com:587" or "127.0.0.1:25"`
	host, port, err := net.SplitHostPort(text)
	switch number, bad := strconv.Atoi(port); {
	case err != nil || host == "":
		c.fault("host", strconv.Quote(text)+" is not host:port", example)
	case bad != nil || number < 1 || number > 65535:
		c.fault("host", "the port is not between 1 and 65535", example)
	default:
		if m.host, err = asciiHost(host); err != nil {
			c.fault("host", "the host can not be looked up", example)
		}
		m.address = net.JoinHostPort(m.host, port)
	}
}

// asciiHost is a host as the network knows it: names outside ASCII in their
// xn-- form. net/http knows that form when it writes a Host.
func asciiHost(host string) (string, error) {
	if isASCII(host) {
		return host, nil
	}
	t, err := newTarget("GET", &url.URL{Scheme: "http", Host: host}, "")
	return t.name, err
}

func (c *mailCompiler) sender(m *Mailer, text string) {
	const example = `write "creel@example.com" or "Creel <creel@example.com>"`
	if text == "" {
		c.fault("from", "mail has no sender", example)
		return
	}
	from, err := parseAddress("from", text)
	if err != nil {
		c.fault("from", err.Error(), example)
		return
	}
	m.from, m.domain = from, from.Address[strings.LastIndexByte(from.Address, '@')+1:]
}

func (c *mailCompiler) login(m *Mailer, cfg config.SMTP) {
	switch {
	case cfg.Username == "" && cfg.Password.IsZero():
		return
	case cfg.Username == "":
		c.fault("username", "there is a password and no username", "set both, or neither")
		return
	case cfg.Password.IsZero():
		c.fault("password", "there is a username and no password", `set both, as password = "env:SMTP_PASSWORD", or neither`)
		return
	case strings.ContainsFunc(cfg.Username, isControl):
		c.fault("username", "it holds a control character", "look for a line end inside it")
		return
	}
	plain, ok := c.resolve("password", cfg.Password)
	switch {
	case !ok:
		return
	case len(plain) == 0 || strings.ContainsFunc(string(plain), isControl):
		c.fault("password", "it is empty or holds a control character", "look for a line end inside it")
		return
	}
	m.username, m.password = cfg.Username, string(plain)
	// As a server may quote them: plain, as LOGIN sends it and as PLAIN does.
	for _, text := range []string{"\x00" + m.username + "\x00" + m.password, m.password} {
		m.hide(base64.StdEncoding.EncodeToString([]byte(text)))
	}
	m.hide(m.password)
}

// secure decides how connections are protected. A password is worth TLS also
// on this machine, unless the owner says otherwise.
func (c *mailCompiler) secure(m *Mailer, text string, opt Options) {
	_, port, _ := net.SplitHostPort(m.address)
	local := isLocal(m.host)
	m.asked, m.security = text, security(text)
	switch m.security {
	case "", secureAuto:
		m.asked = string(secureAuto)
		switch {
		case port == implicitPort:
			m.security = secureImplicit
		case local && m.password == "":
			m.security = secureNone
		default:
			m.security = secureStartTLS
		}
	case secureStartTLS, secureImplicit:
	case secureNone:
		if m.host != "" && !local {
			c.fault("tls", "mail to another machine is not sent without TLS",
				`write "starttls" (port 587), "implicit" (port 465), or leave it out`)
		}
	default:
		c.fault("tls", strconv.Quote(text)+" is not known", `write "auto", "starttls", "implicit" or "none"`)
	}
	m.tls = &tls.Config{ServerName: m.host, RootCAs: opt.RootCAs, MinVersion: tls.VersionTLS12}
}

// fqdn is a host name that servers take in a greeting.
var fqdn = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)+$`)

// greeting is the name that we give. A machine without a full name gives the
// address that it comes from, as RFC 5321 (4.1.4) has it.
func (c *mailCompiler) greeting(m *Mailer, text string) {
	if text != "" {
		literal := strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") && !strings.ContainsAny(text, " <>\t\r\n")
		if !literal && !fqdn.MatchString(text) && text != "localhost" {
			c.fault("hello", strconv.Quote(text)+" is not the name of a machine", `write it in full, as "mail.example.com"`)
		}
		m.hello = text
		return
	}
	if name, err := os.Hostname(); err == nil && fqdn.MatchString(name) {
		m.hello = name
	}
}

func (c *mailCompiler) review(text string) bool {
	var d Destination
	c.doubt(&d, text)
	return d.review
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// parseAddress reads one address, with a name or without. The errors name the
// field and do not repeat its text.
func parseAddress(field, text string) (mail.Address, error) {
	if strings.ContainsFunc(text, isControl) {
		return mail.Address{}, fmt.Errorf("%s holds a control character: %w", field, errInjected)
	}
	parsed, err := mail.ParseAddress(text)
	if err != nil {
		return mail.Address{}, fmt.Errorf("%s is not one mail address", field)
	}
	// A name may have been decoded from its MIME form.
	if strings.ContainsFunc(parsed.Name, isControl) || strings.ContainsFunc(parsed.Address, isControl) {
		return mail.Address{}, fmt.Errorf("%s holds a control character: %w", field, errInjected)
	}
	at := strings.LastIndexByte(parsed.Address, '@')
	local, domain := parsed.Address[:at], parsed.Address[at+1:]
	if !isASCII(local) {
		return mail.Address{}, fmt.Errorf("%s has a character outside ASCII before its @, which few servers take", field)
	}
	if domain, err = asciiHost(domain); err != nil {
		return mail.Address{}, fmt.Errorf("%s has a domain that is none", field)
	}
	parsed.Address = local + "@" + domain
	return *parsed, nil
}
