package handlers

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/mail"
	"strings"

	"creel/config"
	"creel/event"
	"creel/path"
)

// email makes event.Email.
type email struct {
	to                  []*path.Template
	subject, text, html *path.Template
}

func (c *compiler) email(at string, m *config.Email) maker {
	if m == nil {
		return nil
	}
	out := &email{subject: c.needed(config.Join(at, "subject"), m.Subject, `such as subject = "Order {body.id}"`)}
	if c.cfg.SMTP.Host == "" {
		c.fault(at, "there is no mail server", `write [smtp] with host = "127.0.0.1:587" and from = "creel@example.com"`)
	}
	if len(m.To) == 0 {
		c.fault(config.Join(at, "to"), "is missing", `name a recipient, such as to = "{body.customer.email}"`)
	}
	for i, to := range m.To {
		at := list(config.Join(at, "to"), i, len(m.To))
		t := c.needed(at, to, "leave it out")
		if _, err := oneAddress(to); t != nil && !varies(t) && err != nil {
			c.fault(at, err.Error(), `write "owner@example.com" or "{body.email}"`)
		}
		out.to = append(out.to, t)
	}
	if m.Text+m.HTML+m.TextFile+m.HTMLFile == "" { // Load has read the files
		c.fault(at, "says nothing", "write text, or html, or both")
	}
	if m.Text != "" {
		out.text = c.template(config.Join(at, "text"), m.Text)
	}
	if m.HTML != "" {
		out.html = c.template(config.Join(at, "html"), m.HTML)
	}
	if strings.ContainsAny(m.Subject, "\r\n") {
		c.fault(config.Join(at, "subject"), "has a line break", "a subject is one line")
	}
	return out
}

func (*email) word() string { return "email" }

func (m *email) make(_ context.Context, s *subject, o operation) ([]event.Effect, error) {
	out := event.Email{Key: o.key, Rule: o.rule, Lane: o.lane, LaneSkip: o.laneSkip}
	var err error
	if out.Subject, err = s.render(m.subject); err != nil {
		return nil, fmt.Errorf("subject: %w", err)
	}
	out.Subject = unfolded(out.Subject)
	if out.Text, err = s.render(m.text); err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	if out.HTML, err = s.renderHTML(m.html); err != nil {
		return nil, fmt.Errorf("html: %w", err)
	}
	var effects []event.Effect
	told := map[string]bool{}
	for _, t := range m.to {
		to, err := s.render(t)
		if err == nil {
			to, err = oneAddress(to)
		}
		if err != nil {
			return nil, fmt.Errorf("to: %w", err)
		}
		if !told[to] { // two places may hold the same address
			told[to] = true
			out.To = to
			effects = append(effects, out)
		}
	}
	return effects, nil
}

// renderHTML renders a template with what the event puts into it escaped.
func (s *subject) renderHTML(t *path.Template) (string, error) {
	if t == nil {
		return "", nil
	}
	return s.escaped(t, html.EscapeString)
}

// escaped renders a template with each value put through escape.
func (s *subject) escaped(t *path.Template, escape func(string) string) (string, error) {
	var b strings.Builder
	for _, piece := range t.Pieces() {
		text, ok, err := piece.Text(s.doc, s.name)
		if err == nil && !ok && !piece.Optional {
			err = &path.PlaceError{Place: piece.Place(), Err: path.ErrMissing}
		}
		if err != nil {
			return "", err
		}
		if piece.Literal == "" {
			text = escape(text)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// The ways in which a mail can be wrong. None repeats what the event holds.
var (
	errLineBreak = errors.New("has a line break or another control character")
	errNoAddress = errors.New("is no mail address")
)

// controls tells what could begin another header.
func controls(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 }

// oneLine refuses what could begin another header.
func oneLine(text string) error {
	if strings.ContainsFunc(text, controls) {
		return errLineBreak
	}
	return nil
}

// unfolded puts a text on one line, each run of control characters a space: a
// name with a line break in it costs nobody his mail, and begins no header.
func unfolded(text string) string {
	return strings.Join(strings.FieldsFunc(text, controls), " ")
}

// oneAddress takes the one address that a text must be, without the name that
// may stand before it: it is the identity of the recipient.
func oneAddress(text string) (string, error) {
	if err := oneLine(text); err != nil {
		return "", err
	}
	address, err := mail.ParseAddress(text)
	if err != nil {
		return "", errNoAddress
	}
	// A quoted name may hold what means another address once it stands bare.
	bare, err := mail.ParseAddress(address.Address)
	if err != nil || bare.Address != address.Address {
		return "", errNoAddress
	}
	return address.Address, nil
}
