package deliver

import (
	"errors"
	"fmt"
	"net/textproto"
	"regexp"
	"strings"
)

// What may be wrong with the mode of TLS. The texts end in what to set.
var (
	errTLSFirst    = errors.New(`the port waits for TLS from the first byte: set tls = "implicit", or use the port for STARTTLS, often 587`)
	errPlainFirst  = errors.New(`the port does not begin with TLS: set tls = "starttls", or use the port for implicit TLS, often 465`)
	errNoHandshake = fmt.Errorf(`the port answered no TLS handshake within %s: set tls = "starttls" if it does not begin with TLS, or use the port for implicit TLS, often 465`, handshakeTime)
	errNoStartTLS  = errors.New(`the server offers no STARTTLS, and nothing is sent without TLS`)
)

// noLoginError says that there is no way to authenticate.
type noLoginError struct{ offered []string }

// Error implements error.
func (e *noLoginError) Error() string {
	if len(e.offered) == 0 {
		return "the server offers no login on this connection; remove username and password if it wants none"
	}
	return fmt.Sprintf("the server offers only the logins %s, and we know PLAIN, LOGIN, CRAM-MD5 and SCRAM-SHA-256",
		strings.Join(e.offered, ", "))
}

// outOfTurnError is an answer that is neither a refusal nor the one that its
// moment asks for.
type outOfTurnError struct{ code int }

// Error implements error.
func (e *outOfTurnError) Error() string {
	return fmt.Sprintf("answered %d, which means nothing there: it does not speak SMTP, or something between changes what it says", e.code)
}

const (
	// statusRefusedLogin is the code for a wrong username or password.
	statusRefusedLogin = 535
	// statusWantsMore is the code for what has to come before: TLS or a login.
	statusWantsMore = 530
)

// failure is the text of a failed attempt for the operator, without the
// password and the mail's own text.
func (m *Mailer) failure(s *spoken) string {
	text := ""
	switch {
	case s.Unsendable:
		text = "the mail can not be sent: " + s.Err.Error()
	case s.Status == 0:
		text = m.unanswered(s)
	default:
		text = fmt.Sprintf("SMTP %s, at %s", s.words, s.stage)
		switch s.Status {
		case statusRefusedLogin:
			text += "; check the username and password of [smtp]"
		case statusWantsMore:
			text += m.wanted()
		}
	}
	return printable(m.masked(strings.ReplaceAll(text, "\n", " ")), mostError)
}

// wanted names what a server may want first, where it does not have it.
func (m *Mailer) wanted() string {
	switch {
	case m.security == secureNone && m.username == "":
		return `; set tls = "starttls" in [smtp] where it wants TLS, and username and password where it wants a login`
	case m.security == secureNone:
		return `; set tls = "starttls" in [smtp] where it wants TLS`
	case m.username == "":
		return "; set username and password in [smtp]"
	}
	return ""
}

// unanswered says why there is no word of the server on the mail.
func (m *Mailer) unanswered(s *spoken) string {
	text := m.reason(s)
	if s.stage != "" {
		text += fmt.Sprintf(" (at %s, with smtp.tls = %q%s)", s.stage, m.asked, m.meant())
	}
	if s.Wrote {
		text += "; the mail was sent whole, so the server may have taken it"
	}
	return text
}

func (m *Mailer) meant() string {
	if m.asked != string(secureAuto) {
		return ""
	}
	return ", which is " + string(m.security) + " here"
}

func (m *Mailer) reason(s *spoken) string {
	var garbage textproto.ProtocolError
	var login *noLoginError
	var odd *outOfTurnError
	switch {
	case errors.Is(s.Err, errNoStartTLS):
		return errNoStartTLS.Error() + m.withoutTLS()
	case errors.Is(s.Err, errTLSFirst), errors.Is(s.Err, errPlainFirst), errors.Is(s.Err, errNoHandshake),
		errors.Is(s.Err, errSpoken), errors.As(s.Err, &login):
		return s.Err.Error()
	case errors.As(s.Err, &odd):
		return m.address + " " + odd.Error()
	case errors.As(s.Err, &garbage):
		return m.address + " does not speak SMTP"
	}
	return whyUnanswered(s.Err, m.address, m.timeout, m.connect)
}

// withoutTLS is how the owner goes on where a server knows no STARTTLS.
func (m *Mailer) withoutTLS() string {
	if isLocal(m.host) {
		return `: set tls = "none" if this machine alone is between you and it, or "implicit" for a port that begins with TLS`
	}
	return `: set tls = "implicit" for a port that begins with TLS, often 465, or ask the server's owner`
}

// enhanced is the code of RFC 3463 before the words of an answer.
var enhanced = regexp.MustCompile(`^\d{3} [245]\.(\d{1,3})\.\d{1,3}\b`)

// isAboutTheMail tells whether a refusal for now says nothing of the server:
// it came after the recipient was named, and is not about the server's own
// state (RFC 3463: class 3 is the mail system, 4 the network).
func (s *spoken) isAboutTheMail() bool {
	if s.Status < 400 || s.Status > 499 || s.Status == statusGoodbye {
		return false
	}
	if s.stage != "RCPT TO" && s.stage != "the message" {
		return false
	}
	found := enhanced.FindStringSubmatch(s.words)
	return found == nil || found[1] != "3" && found[1] != "4"
}
