package deliver

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"
	"time"
	"unicode/utf8"

	"creel/event"
)

const (
	// mostLine is the length of a header line that RFC 5322 (2.1.1) recommends
	// not to pass, in bytes.
	mostLine = 78
	// mostEncoded is how many bytes of text go into one encoded word: with its
	// frame it fits behind the name of any header of ours.
	mostEncoded = 33
)

// The texts that no mail can be made of.
var (
	errInjected = errors.New("a line end there could add headers")
	errNoText   = errors.New("the mail has neither a text nor an html part")
)

// letter is a mail as it is sent.
type letter struct {
	from, to string // with their angle brackets
	data     []byte // CRLF line ends, no dots stuffed
}

// compose writes the mail of a shipment. The same delivery has the same
// Message-ID on every attempt and replay, so that a reader's own server can
// drop a repetition; Date is when the rule asked for the mail.
func (m *Mailer) compose(s *event.Shipment, text event.MailText, now time.Time) (*letter, error) {
	to, err := parseAddress("the recipient", s.Target)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(text.Subject, isLineEnd) {
		return nil, fmt.Errorf("the subject holds a line end or a NUL: %w", errInjected)
	}
	if text.Text == "" && text.HTML == "" {
		return nil, errNoText
	}
	at := s.CreatedAt
	if at.IsZero() {
		at = now
	}
	var b bytes.Buffer
	field := func(name, value string) { b.WriteString(name + ": " + value + "\r\n") }
	field("Date", at.UTC().Format(time.RFC1123Z))
	field("From", addressValue(m.from))
	field("To", addressValue(to))
	field("Message-ID", m.messageID(s))
	field("Subject", textValue("Subject", text.Subject))
	field("Auto-Submitted", "auto-generated")
	field("MIME-Version", "1.0")
	if err := writeBody(&b, text); err != nil {
		return nil, err
	}
	return &letter{from: bracketed(m.from), to: bracketed(to), data: b.Bytes()}, nil
}

// messageID is derived from what makes the delivery unique: its business key
// and its recipient.
func (m *Mailer) messageID(s *event.Shipment) string {
	return "<" + event.WebhookID(s.Key, s.Destination+"\x00"+s.Target) + "@" + m.domain + ">"
}

func isLineEnd(r rune) bool {
	return r == '\r' || r == '\n' || r == 0 || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029
}

// bracketed is an address as the commands of SMTP take it.
func bracketed(a mail.Address) string { return (&mail.Address{Address: a.Address}).String() }

// addressValue is an address in a header.
func addressValue(a mail.Address) string {
	if a.Name == "" {
		return bracketed(a)
	}
	name := textValue("From", a.Name)
	if isPlain(a.Name) {
		name = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a.Name) + `"`
	}
	return name + "\r\n " + bracketed(a)
}

// textValue is a text in a header, folded: as it is where every mail program
// reads it back exactly, else in encoded words (RFC 2047).
func textValue(field, text string) string {
	if !isPlain(text) {
		return encodedWords(text)
	}
	var b strings.Builder
	used := len(field) + len(": ")
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
		case used+1+len(word) > mostLine:
			b.WriteString("\r\n ")
			used = 1
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += len(word)
	}
	return b.String()
}

// isPlain tells whether a text needs no encoding: visible ASCII, single spaces
// between its words, none of them too long to fold, none that looks encoded.
func isPlain(text string) bool {
	for word := range strings.SplitSeq(text, " ") {
		if word == "" && text != "" || len(word) > mostLine-len("Subject: ") || strings.Contains(word, "=?") {
			return false
		}
		for i := range len(word) {
			if word[i] <= ' ' || word[i] > '~' {
				return false
			}
		}
	}
	return true
}

// encodedWords writes a text as encoded words in base64, one a line. No
// character is split between two.
func encodedWords(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	var words []string
	for text != "" {
		end := 0
		for end < len(text) {
			_, size := utf8.DecodeRuneInString(text[end:])
			if end+size > mostEncoded {
				break
			}
			end += size
		}
		words = append(words, "=?utf-8?B?"+base64.StdEncoding.EncodeToString([]byte(text[:end]))+"?=")
		text = text[end:]
	}
	return strings.Join(words, "\r\n ")
}

// writeBody writes the end of the header and the body: one part, or two of
// which a reader shows the one that it prefers.
func writeBody(b *bytes.Buffer, text event.MailText) error {
	const plain, html = "text/plain; charset=utf-8", "text/html; charset=utf-8"
	switch {
	case text.HTML == "":
		return writePart(b, plain, text.Text)
	case text.Text == "":
		return writePart(b, html, text.HTML)
	}
	parts := multipart.NewWriter(b)
	b.WriteString("Content-Type: multipart/alternative;\r\n boundary=\"" + parts.Boundary() + "\"\r\n\r\n")
	for _, part := range []struct{ kind, text string }{{plain, text.Text}, {html, text.HTML}} {
		w, err := parts.CreatePart(textproto.MIMEHeader{
			"Content-Type": {part.kind}, "Content-Transfer-Encoding": {"quoted-printable"}})
		if err != nil {
			return fmt.Errorf("begin a part of a mail: %w", err)
		}
		if err := quote(w, part.text); err != nil {
			return err
		}
	}
	if err := parts.Close(); err != nil {
		return fmt.Errorf("end the parts of a mail: %w", err)
	}
	return nil
}

func writePart(b *bytes.Buffer, kind, text string) error {
	b.WriteString("Content-Type: " + kind + "\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n")
	if err := quote(b, text); err != nil {
		return err
	}
	if !strings.HasSuffix(text, "\n") {
		b.WriteString("\r\n")
	}
	return nil
}

// quote writes a text as quoted-printable: lines of any length and characters
// of any kind survive every server.
func quote(to interface{ Write([]byte) (int, error) }, text string) error {
	w := quotedprintable.NewWriter(to)
	_, err := w.Write([]byte(strings.ToValidUTF8(text, string(utf8.RuneError))))
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return fmt.Errorf("encode the text of a mail: %w", err)
	}
	return nil
}
