package deliver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

// quitTime bounds the goodbye: what became of the mail is known by then.
const quitTime = time.Second

// spoken is what a conversation with the server came to.
type spoken struct {
	Reply
	stage string // where it ended
	words string // the server's last answer, its code first
}

// session is one connection on its way through the stages.
type session struct {
	*Mailer
	stream *stream
	client *smtp.Client
	letter *letter
	body   io.WriteCloser // of DATA
	words  string         // of the answer to the mail
	ended  bool           // the mail's last line was given to the socket
}

// send takes a mail to the server over a connection of its own. The end of ctx
// closes the socket, so that whatever waits for it ends at once.
func (m *Mailer) send(ctx context.Context, l *letter) spoken {
	deadline := time.Now().Add(m.timeout)
	socket, err := m.dial(ctx, deadline)
	if err != nil {
		return lost(ctx, "", &sendError{err: err})
	}
	s := &session{Mailer: m, stream: newStream(socket), letter: l}
	defer func() { _ = socket.Close() }()
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })()
	if err := socket.SetDeadline(deadline); err != nil {
		return lost(ctx, "", &sendError{err: err, connected: true})
	}
	for _, stage := range []struct {
		name string
		pass func(context.Context, time.Time) error
	}{
		{"the greeting", s.greet}, {"EHLO", s.introduce}, {"STARTTLS", s.secure}, {"AUTH", s.login},
		{"MAIL FROM", s.sender}, {"RCPT TO", s.recipient}, {"DATA", s.data}, {"the message", s.finish},
	} {
		if err := stage.pass(ctx, deadline); err != nil {
			return s.failed(ctx, stage.name, err)
		}
	}
	s.leave()
	return spoken{Reply: Reply{Status: statusMailTaken, Wrote: true, SMTP: true}, words: s.words}
}

// statusMailTaken is the code with which a server takes a mail over.
const statusMailTaken = 250

func (m *Mailer) dial(ctx context.Context, deadline time.Time) (net.Conn, error) {
	dialer := net.Dialer{Deadline: earlier(deadline, time.Now().Add(m.connect))}
	return dialer.DialContext(ctx, "tcp", m.address)
}

// lost is the end of a conversation without a word on the mail.
func lost(ctx context.Context, stage string, err error) spoken {
	if cause := ctx.Err(); cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return spoken{Reply: Reply{Err: err, SMTP: true}, stage: stage}
}

// failed ends a conversation at a stage. A refusal is polite to the end.
func (s *session) failed(ctx context.Context, stage string, err error) spoken {
	var refusal *textproto.Error
	if !errors.As(err, &refusal) {
		end := lost(ctx, stage, &sendError{err: err, connected: true})
		// A last line that the socket did not take whole never arrived.
		end.Wrote = s.ended && s.stream.broken == nil
		return end
	}
	switch class := refusal.Code / 100; {
	case class == 2 && s.ended:
		s.leave()
		return spoken{Reply: Reply{Status: refusal.Code, Wrote: true, SMTP: true}, words: wordsOf(refusal)}
	case class != 4 && class != 5:
		// It is the word for another moment: no word on the mail, nor is what
		// comes after it.
		end := lost(ctx, stage, &outOfTurnError{code: refusal.Code})
		end.Wrote, end.words = s.ended, wordsOf(refusal)
		return end
	}
	if s.client != nil && stage != "the greeting" && refusal.Code != statusGoodbye {
		s.leave()
	}
	return spoken{Reply: Reply{Status: refusal.Code, Err: err, Wrote: s.ended, SMTP: true}, stage: stage, words: wordsOf(refusal)}
}

// statusGoodbye is the code with which a server closes the connection itself.
const statusGoodbye = 421

func wordsOf(refusal *textproto.Error) string { return fmt.Sprintf("%d %s", refusal.Code, refusal.Msg) }

// greet waits for the server's first words, within TLS where that comes first.
func (s *session) greet(ctx context.Context, deadline time.Time) error {
	var conn net.Conn = s.stream
	if s.security == secureImplicit {
		secured := tls.Client(s.stream, s.tls)
		if err := s.handshake(ctx, secured); err != nil {
			return err
		}
		conn = secured
	} else if err := s.awaitGreeting(ctx, deadline); err != nil {
		return err
	}
	client, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return err
	}
	client.SkipSMTPUTF8(true) // all that we send is ASCII
	s.client = client
	s.takeBareCodes()
	return nil
}

func (s *session) introduce(context.Context, time.Time) error {
	hello := s.hello
	if hello == "" {
		hello = literal(s.stream.LocalAddr())
	}
	return s.client.Hello(hello)
}

// literal is an address in the place of a name.
func literal(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	switch {
	case !ok:
		return "localhost"
	case tcp.IP.To4() != nil:
		return "[" + tcp.IP.String() + "]"
	}
	return "[IPv6:" + tcp.IP.String() + "]"
}

func (s *session) secure(context.Context, time.Time) error {
	if s.security != secureStartTLS {
		return nil
	}
	if offered, _ := s.client.Extension("STARTTLS"); !offered {
		return errNoStartTLS
	}
	if err := s.client.StartTLS(s.tls.Clone()); err != nil {
		return err
	}
	s.takeBareCodes()
	return nil
}

// login authenticates. Without TLS it comes to that only on this machine, and
// a way that does not show the password goes first.
func (s *session) login(context.Context, time.Time) error {
	if s.username == "" {
		return nil
	}
	_, offer := s.client.Extension("AUTH")
	offered := strings.Fields(strings.ToUpper(offer))
	clear := s.security == secureNone
	ways := []struct {
		name string
		auth smtp.Auth
	}{
		{"PLAIN", smtp.PlainAuth("", s.username, s.password, s.host, clear)},
		{"LOGIN", smtp.LoginAuth(s.username, s.password, s.host, clear)},
		{"CRAM-MD5", smtp.CRAMMD5Auth(s.username, s.password)},
		{"SCRAM-SHA-256", smtp.ScramSHA256Auth(s.username, s.password)},
	}
	if clear {
		slices.Reverse(ways)
	}
	for _, way := range ways {
		if slices.Contains(offered, way.name) {
			return s.client.Auth(way.auth)
		}
	}
	return &noLoginError{offered: offered}
}

func (s *session) sender(context.Context, time.Time) error { return s.client.Mail(s.letter.from) }

func (s *session) recipient(context.Context, time.Time) error { return s.client.Rcpt(s.letter.to) }

func (s *session) data(context.Context, time.Time) error {
	w, err := s.client.Data()
	if err != nil {
		return err
	}
	s.body = w
	return nil
}

// finish writes the mail and waits for the server's word on it. From its last
// line on nobody but the server knows whether the mail was taken.
func (s *session) finish(context.Context, time.Time) error {
	if _, err := s.body.Write(s.letter.data); err != nil {
		return err
	}
	s.ended = true
	if err := s.body.Close(); err != nil {
		return err
	}
	s.words = fmt.Sprintf("%d", statusMailTaken)
	if closer, ok := s.body.(*smtp.DataCloser); ok {
		s.words += " " + closer.ServerResponse()
	}
	return nil
}

// leave says goodbye.
func (s *session) leave() {
	if s.stream.SetDeadline(time.Now().Add(quitTime)) == nil {
		_ = s.client.Quit()
	}
}
