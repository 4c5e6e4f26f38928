package deliver

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// lineServer is a server that is no library's: answer says what it does with a
// connection.
func lineServer(t *testing.T, answer func(net.Conn, *bufio.Reader)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				answer(conn, bufio.NewReader(conn))
			}()
		}
	}()
	return listener.Addr().String()
}

func mailerAt(t *testing.T, address string, change func(*config.SMTP)) *Mailer {
	t.Helper()
	return mailerOf(t, &testkit.MailServer{Addr: address}, change, nil)
}

// A server that repeats the login in its refusal, in whatever form, does not
// get it into an error or a kept answer.
func TestGateD7NoSecretIsKept(t *testing.T) {
	t.Parallel()
	plain := base64.StdEncoding.EncodeToString([]byte("\x00" + mailUser + "\x00" + mailPassword))
	alone := base64.StdEncoding.EncodeToString([]byte(mailPassword))
	address := lineServer(t, func(conn net.Conn, lines *bufio.Reader) {
		_, _ = fmt.Fprint(conn, "220 here\r\n")
		_, _ = lines.ReadString('\n')
		_, _ = fmt.Fprint(conn, "250-here\r\n250 AUTH PLAIN\r\n")
		_, _ = lines.ReadString('\n')
		_, _ = fmt.Fprintf(conn, "535-no: AUTH PLAIN %s\r\n535-%s\r\n535 %s \x1b[31m%s\r\n", plain, alone, mailPassword, strings.Repeat("x", 5000))
	})
	m := mailerAt(t, address, func(cfg *config.SMTP) { withLogin(cfg); cfg.TLS = "none" })
	result := m.Attempt(t.Context(), mailShipment(t, hello), time.Now())
	if result.Attempt.Outcome != event.Permanent || result.Attempt.Status != 535 {
		t.Fatalf("%+v", result.Attempt)
	}
	for _, text := range []string{result.Attempt.Error, result.Attempt.Answer} {
		if showsPassword([]byte(text)) || strings.Contains(text, "\x1b") || len(text) > mostKept {
			t.Errorf("%q", text)
		}
	}
	if !strings.Contains(result.Attempt.Answer, "[secret]") || !strings.Contains(result.Attempt.Error, "AUTH") {
		t.Errorf("error %q, answer %q", result.Attempt.Error, result.Attempt.Answer)
	}
}

// Servers that are none end the attempt within its bounds.
func TestGateD7StrangeServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(net.Conn, *bufio.Reader)
		want   string
	}{
		"a web server": {func(conn net.Conn, _ *bufio.Reader) {
			_, _ = fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
		}, "does not speak SMTP"},
		"an endless greeting": {func(conn net.Conn, _ *bufio.Reader) {
			for {
				if _, err := fmt.Fprintf(conn, "220-%s\r\n", strings.Repeat("x", 500)); err != nil {
					return
				}
			}
		}, "over 1 MiB"},
		"an endless line": {func(conn net.Conn, _ *bufio.Reader) {
			for {
				if _, err := fmt.Fprint(conn, strings.Repeat("2", 4096)); err != nil {
					return
				}
			}
		}, "over 1 MiB"},
		"nothing": {func(net.Conn, *bufio.Reader) {}, "closed the connection"},
		"a greeting that comes slowly": {func(conn net.Conn, lines *bufio.Reader) {
			_ = conn.SetReadDeadline(time.Now().Add(1500 * time.Millisecond)) // the client says nothing before
			_, _ = lines.ReadByte()
			_, _ = fmt.Fprint(conn, "450 busy\r\n")
		}, "450 busy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mailerAt(t, lineServer(t, c.answer), func(cfg *config.SMTP) { cfg.Timeout = config.Duration(5 * time.Second) })
			m.silence = time.Second
			result := m.Attempt(t.Context(), mailShipment(t, hello), time.Now())
			if result.Attempt.Outcome != event.Transient || !strings.Contains(result.Attempt.Error, c.want) {
				t.Errorf("%+v", result.Attempt)
			}
		})
	}
}

// The stop of the server ends an attempt at once; what of it was written is
// told.
func TestGateD7Interrupted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stage testkit.MailStage
		want  event.Outcome
	}{{testkit.AtTo, event.Transient}, {testkit.AtMessage, event.Unknown}} {
		server := testkit.NewMailServer(t, testkit.MailOptions{})
		server.Script(testkit.MailAnswer{Stage: c.stage, Hang: true})
		m := mailerOf(t, server, func(cfg *config.SMTP) { cfg.Timeout = config.Duration(time.Minute) }, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan Result, 1)
		go func() { ended <- m.Attempt(ctx, mailShipment(t, hello), time.Now()) }()
		word := map[testkit.MailStage]string{testkit.AtTo: "RCPT TO", testkit.AtMessage: "\r\n.\r\n"}[c.stage]
		testkit.Poll(t, 10*time.Second, word, func() bool { return strings.Contains(string(server.Heard()), word) })
		cancel()
		select {
		case result := <-ended:
			if result.Attempt.Outcome != c.want || !strings.Contains(result.Attempt.Error, "interrupted by the stop") {
				t.Errorf("%s: %+v", c.stage, result.Attempt)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the attempt goes on", c.stage)
		}
	}
}

func TestMailConfiguration(t *testing.T) {
	t.Parallel()
	whole := func(change func(*config.SMTP)) config.SMTP {
		cfg := config.Default().SMTP
		cfg.Host, cfg.From = "mail.example.com:587", "creel@example.com"
		change(&cfg)
		return cfg
	}
	for name, c := range map[string]struct {
		change func(*config.SMTP)
		fault  string
	}{
		"sound":                    {func(*config.SMTP) {}, ""},
		"no port":                  {func(s *config.SMTP) { s.Host = "mail.example.com" }, "smtp.host"},
		"no host":                  {func(s *config.SMTP) { s.Host = ":25" }, "smtp.host"},
		"port 0":                   {func(s *config.SMTP) { s.Host = "mail.example.com:0" }, "smtp.host"},
		"no sender":                {func(s *config.SMTP) { s.From = "" }, "smtp.from"},
		"a bad sender":             {func(s *config.SMTP) { s.From = "creel" }, "smtp.from"},
		"none on another machine":  {func(s *config.SMTP) { s.TLS = "none" }, "smtp.tls"},
		"none on this one":         {func(s *config.SMTP) { s.TLS, s.Host = "none", "localhost:25" }, ""},
		"another mode":             {func(s *config.SMTP) { s.TLS = "ssl" }, "smtp.tls"},
		"a user and no password":   {func(s *config.SMTP) { s.Username = "u" }, "smtp.password"},
		"a password and no user":   {func(s *config.SMTP) { s.Password = config.NewSecret("pass-word") }, "smtp.username"},
		"a password that is none":  {func(s *config.SMTP) { s.Username, s.Password = "u", config.NewSecret("env:NONE") }, "smtp.password"},
		"a name with a blank":      {func(s *config.SMTP) { s.Hello = "my host" }, "smtp.hello"},
		"a name":                   {func(s *config.SMTP) { s.Hello = "app.example.com" }, ""},
		"an address in brackets":   {func(s *config.SMTP) { s.Hello = "[192.0.2.1]" }, ""},
		"on_doubt":                 {func(s *config.SMTP) { s.OnDoubt = "guess" }, "smtp.on_doubt"},
		"a timeout under the unit": {func(s *config.SMTP) { s.Timeout = 1 }, "smtp.timeout"},
	} {
		m, problems := NewMailer(whole(c.change), "smtp", Options{Env: noEnv, Clock: time.Now})
		faults := problems.Faults()
		if c.fault == "" {
			if len(faults) > 0 || m == nil {
				t.Errorf("%s: %v", name, faults)
			}
			continue
		}
		if len(faults) != 1 || faults[0].Path != c.fault || faults[0].Hint == "" && name != "a password that is none" || m != nil {
			t.Errorf("%s: %v", name, faults)
		}
	}
	if m, _ := NewMailer(whole(func(s *config.SMTP) { s.Host = "mail.example.com:465" }), "smtp",
		Options{Env: noEnv, Clock: time.Now}); m.security != secureImplicit {
		t.Errorf("port 465 is %s", m.security)
	}
}
