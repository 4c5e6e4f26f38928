package testkit

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// MailStage is a step of a conversation at which a mail server may fail.
type MailStage string

// The stages, in their order. AtGreeting and AtData are told in the clear
// only: before TLS, or without it.
const (
	AtGreeting MailStage = "greeting"
	AtHello    MailStage = "EHLO"
	AtAuth     MailStage = "AUTH"
	AtFrom     MailStage = "MAIL FROM"
	AtTo       MailStage = "RCPT TO"
	AtData     MailStage = "DATA"
	AtBody     MailStage = "body"    // while the mail is being sent
	AtMessage  MailStage = "message" // after its last line
)

// MailAnswer is what a mail server does in one conversation: at its stage it
// gives the code, or drops the connection, or says nothing more. The zero
// value takes the mail.
type MailAnswer struct {
	Stage    MailStage
	Code     int
	Enhanced [3]int
	Text     string
	Drop     bool // a mail that was read whole is kept nevertheless
	Hang     bool
	// Wait, where it is set, is waited for before the mail is answered; it is
	// kept before that.
	Wait <-chan struct{}
}

// Mail is one mail that a server has read whole and did not refuse.
type Mail struct {
	From, To string
	Data     []byte // as it came, dots unstuffed
	Hello    string
	User     string // who logged in
	TLS      bool
}

// MailOptions say what kind of server it is.
type MailOptions struct {
	// Authority secures it: by STARTTLS, or from the first byte where Implicit
	// says so.
	Authority *Authority
	Implicit  bool
	// Username and Password are demanded where they are set; Clear offers the
	// login without TLS too. Logins are the mechanisms, PLAIN where it is nil.
	Username, Password string
	Clear              bool
	Logins             []string
	UTF8               bool // offers SMTPUTF8
}

// MailServer is a real SMTP server that gives the answers of a script and
// keeps every mail byte for byte.
type MailServer struct {
	Addr string

	options MailOptions
	mu      sync.Mutex
	script  []MailAnswer
	mails   []Mail
	heard   []byte // all that clients sent, as it was on the wire
	opened  int
	changed chan struct{}
	done    chan struct{}
}

// NewMailServer starts a server that takes every mail until it is told
// otherwise. It stops with the test.
func NewMailServer(t testing.TB, options MailOptions) *MailServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start a mail server: %v", err)
	}
	s := &MailServer{Addr: listener.Addr().String(), options: options, changed: make(chan struct{}), done: make(chan struct{})}
	server := smtp.NewServer(smtp.BackendFunc(s.session))
	server.Domain = "mail.example.test"
	server.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableSMTPUTF8 = options.UTF8
	server.AllowInsecureAuth = options.Clear
	server.ReadTimeout, server.WriteTimeout = time.Minute, time.Minute
	listening := net.Listener(&mailListener{Listener: listener, server: s})
	if options.Authority != nil {
		secured := &tls.Config{Certificates: []tls.Certificate{options.Authority.Server}, MinVersion: tls.VersionTLS12}
		if options.Implicit {
			listening = tls.NewListener(listening, secured)
		} else {
			server.TLSConfig = secured
		}
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listening) }()
	t.Cleanup(func() {
		close(s.done)
		_ = server.Close()
		_ = listener.Close() // the server may not have begun to serve it
		<-ended
	})
	return s
}

// Script gives what happens in the next conversations, one each; the last one
// goes on for all that follow.
func (s *MailServer) Script(answers ...MailAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = answers
}

// Mails returns what was taken so far, in the order of receipt.
func (s *MailServer) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

// Heard is all that clients sent, as it was on the wire: what is encrypted
// stays so.
func (s *MailServer) Heard() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]byte(nil), s.heard...)
}

// Opened is how many connections there were.
func (s *MailServer) Opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// Wait waits until n mails were taken and returns them.
func (s *MailServer) Wait(t testing.TB, n int, limit time.Duration) []Mail {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		mails, changed := append([]Mail(nil), s.mails...), s.changed
		s.mu.Unlock()
		if len(mails) >= n {
			return mails
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("waited %v for %d mails, got %d", limit, n, len(mails))
		}
	}
}

func (s *MailServer) keep(m Mail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, m)
	close(s.changed)
	s.changed = make(chan struct{})
}

// next is what happens in a new conversation.
func (s *MailServer) next() MailAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	if len(s.script) == 0 {
		return MailAnswer{}
	}
	answer := s.script[0]
	if len(s.script) > 1 {
		s.script = s.script[1:]
	}
	return answer
}

func (s *MailServer) session(c *smtp.Conn) (smtp.Session, error) {
	conn, secured := plainConn(c.Conn())
	m := &mailSession{server: s, conn: conn, mail: Mail{Hello: c.Hostname(), TLS: secured}}
	return m, m.at(AtHello)
}

// mailSession is one conversation.
type mailSession struct {
	server *MailServer
	conn   *mailConn
	mail   Mail
}

// at does what the script says of a stage.
func (m *mailSession) at(stage MailStage) error {
	answer := m.conn.answer
	if answer.Stage != stage {
		return nil
	}
	switch {
	case answer.Drop:
		_ = m.conn.Close()
		return io.ErrUnexpectedEOF
	case answer.Hang:
		<-m.server.done
		return io.ErrUnexpectedEOF
	case answer.Code != 0:
		return &smtp.SMTPError{Code: answer.Code, EnhancedCode: answer.Enhanced, Message: answer.Text}
	}
	return nil
}

// AuthMechanisms implements smtp.AuthSession.
func (m *mailSession) AuthMechanisms() []string {
	switch {
	case m.server.options.Username == "":
		return nil
	case m.server.options.Logins != nil:
		return m.server.options.Logins
	}
	return []string{sasl.Plain}
}

// Auth implements smtp.AuthSession.
func (m *mailSession) Auth(way string) (sasl.Server, error) {
	check := func(username, password string) error {
		if err := m.at(AtAuth); err != nil {
			return err
		}
		if username != m.server.options.Username || password != m.server.options.Password {
			return smtp.ErrAuthFailed
		}
		m.mail.User = username
		return nil
	}
	switch way {
	case sasl.Plain:
		return sasl.NewPlainServer(func(_, username, password string) error { return check(username, password) }), nil
	case sasl.Login:
		return &loginServer{check: check}, nil
	}
	return nil, smtp.ErrAuthUnknownMechanism
}

// Mail implements smtp.Session.
func (m *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if m.server.options.Username != "" && m.mail.User == "" {
		return smtp.ErrAuthRequired
	}
	m.mail.From = from
	return m.at(AtFrom)
}

// Rcpt implements smtp.Session.
func (m *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	m.mail.To = to
	return m.at(AtTo)
}

// Data implements smtp.Session.
func (m *mailSession) Data(r io.Reader) error {
	if m.conn.answer.Stage == AtBody {
		_, _ = io.CopyN(io.Discard, r, 16<<10)
		if err := m.at(AtBody); err != nil {
			return err
		}
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m.mail.Data = data
	if answer := m.conn.answer; answer.Stage != AtMessage || answer.Code == 0 {
		m.server.keep(m.mail)
	}
	if m.conn.answer.Wait != nil {
		select {
		case <-m.conn.answer.Wait:
		case <-m.server.done:
		}
	}
	return m.at(AtMessage)
}

// Reset implements smtp.Session.
func (m *mailSession) Reset() {}

// Logout implements smtp.Session.
func (m *mailSession) Logout() error { return nil }

// loginServer is the mechanism LOGIN.
type loginServer struct {
	check    func(username, password string) error
	step     int
	username string
}

// Next implements sasl.Server.
func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	l.step++
	switch l.step {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.username = string(response)
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.username, string(response))
}
