package deliver

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// Every mode of TLS that the configuration knows brings a mail over, with a
// login and without, and no password is seen on the wire.
func TestGateD7Modes(t *testing.T) {
	t.Parallel()
	authority := testkit.NewAuthority(t)
	for name, c := range map[string]struct {
		server  testkit.MailOptions
		mode    string
		secured bool
	}{
		"starttls":              {testkit.MailOptions{Authority: authority}, "starttls", true},
		"implicit":              {testkit.MailOptions{Authority: authority, Implicit: true}, "implicit", true},
		"plain on loopback":     {testkit.MailOptions{}, "auto", false},
		"plain, said so":        {testkit.MailOptions{}, "none", false},
		"login over starttls":   {testkit.MailOptions{Authority: authority, Username: mailUser, Password: mailPassword}, "auto", true},
		"login over implicit":   {testkit.MailOptions{Authority: authority, Implicit: true, Username: mailUser, Password: mailPassword}, "implicit", true},
		"LOGIN over starttls":   {testkit.MailOptions{Authority: authority, Username: mailUser, Password: mailPassword, Logins: []string{"LOGIN"}}, "starttls", true},
		"login in clear, asked": {testkit.MailOptions{Username: mailUser, Password: mailPassword, Clear: true}, "none", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.NewMailServer(t, c.server)
			m := mailerOf(t, server, func(cfg *config.SMTP) {
				cfg.TLS = c.mode
				if c.server.Username != "" {
					withLogin(cfg)
				}
			}, authority)
			got, _ := sent(t, server, m, mailShipment(t, hello))
			if got.TLS != c.secured || got.User != c.server.Username {
				t.Errorf("TLS %t, user %q", got.TLS, got.User)
			}
			if got.From != "creel@example.com" || got.To != "ann@example.net" {
				t.Errorf("from %q to %q", got.From, got.To)
			}
			if c.secured && showsPassword(server.Heard()) {
				t.Error("the password was sent in clear")
			}
		})
	}
}

// showsPassword looks for the password as any mechanism would send it.
func showsPassword(wire []byte) bool {
	for _, text := range []string{mailPassword, base64.StdEncoding.EncodeToString([]byte(mailPassword)),
		base64.StdEncoding.EncodeToString([]byte("\x00" + mailUser + "\x00" + mailPassword))} {
		if bytes.Contains(wire, []byte(text)) {
			return true
		}
	}
	return false
}

// A mode that does not fit the port is told within ten seconds, by its name
// and with what to set; and no password is shown for it.
func TestBugMAIL08WrongMode(t *testing.T) {
	t.Parallel()
	authority := testkit.NewAuthority(t)
	for name, c := range map[string]struct {
		server testkit.MailOptions
		mode   string
		want   []string
	}{
		"starttls on an implicit port": {testkit.MailOptions{Authority: authority, Implicit: true}, "starttls",
			[]string{`smtp.tls = "starttls"`, `set tls = "implicit"`}},
		"auto on an implicit port": {testkit.MailOptions{Authority: authority, Implicit: true}, "auto",
			[]string{`smtp.tls = "auto", which is starttls here`, `set tls = "implicit"`}},
		"none on an implicit port": {testkit.MailOptions{Authority: authority, Implicit: true}, "none",
			[]string{`smtp.tls = "none"`, `set tls = "implicit"`}},
		"implicit on a starttls port": {testkit.MailOptions{Authority: authority}, "implicit",
			[]string{`smtp.tls = "implicit"`, `set tls = "starttls"`}},
		"implicit on a plain port": {testkit.MailOptions{}, "implicit",
			[]string{`smtp.tls = "implicit"`, `set tls = "starttls"`}},
		"a password and no TLS": {testkit.MailOptions{Username: mailUser, Password: mailPassword, Clear: true}, "auto",
			[]string{"no STARTTLS", `smtp.tls = "auto"`, `tls = "none"`}},
		"starttls and no TLS": {testkit.MailOptions{Username: mailUser, Password: mailPassword, Clear: true}, "starttls",
			[]string{"no STARTTLS", `smtp.tls = "starttls"`}},
		"login offered after TLS only": {testkit.MailOptions{Authority: authority, Username: mailUser, Password: mailPassword}, "none",
			[]string{"offers no login", `smtp.tls = "none"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.NewMailServer(t, c.server)
			m := mailerOf(t, server, func(cfg *config.SMTP) {
				cfg.TLS, cfg.Timeout = c.mode, config.Duration(30*time.Second)
				withLogin(cfg)
			}, authority)
			began := time.Now()
			result := m.Attempt(t.Context(), mailShipment(t, hello), began)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			if result.Attempt.Outcome != event.Transient || result.Wrote {
				t.Errorf("%s, wrote %t", result.Attempt.Outcome, result.Wrote)
			}
			for _, want := range c.want {
				if !strings.Contains(result.Attempt.Error, want) {
					t.Errorf("%q does not say %q", result.Attempt.Error, want)
				}
			}
			if showsPassword(server.Heard()) {
				t.Error("the password was sent in clear")
			}
		})
	}
}

// A certificate that nobody vouches for is no TLS.
func TestBugMAIL08Untrusted(t *testing.T) {
	t.Parallel()
	for _, implicit := range []bool{false, true} {
		server := testkit.NewMailServer(t, testkit.MailOptions{Authority: testkit.NewAuthority(t), Implicit: implicit,
			Username: mailUser, Password: mailPassword})
		m := mailerOf(t, server, func(cfg *config.SMTP) {
			withLogin(cfg)
			cfg.TLS = map[bool]string{false: "starttls", true: "implicit"}[implicit]
		}, testkit.NewAuthority(t))
		result := m.Attempt(t.Context(), mailShipment(t, hello), time.Now())
		if result.Attempt.Outcome != event.Transient || !strings.Contains(result.Attempt.Error, "TLS: ") ||
			!strings.Contains(result.Attempt.Error, "certificate") {
			t.Errorf("implicit %t: %+v", implicit, result.Attempt)
		}
		if len(server.Mails()) != 0 || showsPassword(server.Heard()) {
			t.Errorf("implicit %t: something was sent", implicit)
		}
	}
}
