package deliver

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// wordsOfServer is a server that takes every mail, with other answers to some
// commands. "" is the greeting, "." the end of the mail.
func wordsOfServer(t *testing.T, said map[string]string) string {
	t.Helper()
	return lineServer(t, func(conn net.Conn, lines *bufio.Reader) {
		say := func(command, usual string) {
			if other, ok := said[command]; ok {
				usual = other
			}
			_, _ = fmt.Fprintf(conn, "%s\r\n", usual)
		}
		say("", "220 here")
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			switch command, _, _ := strings.Cut(strings.TrimSpace(line), " "); command {
			case "EHLO":
				say(command, "250-here\r\n250 AUTH PLAIN")
			case "AUTH":
				say(command, "235 welcome")
			case "DATA":
				say(command, "354 go on")
				for line != ".\r\n" {
					if line, err = lines.ReadString('\n'); err != nil {
						return
					}
				}
				say(".", "250 taken")
			case "QUIT":
				say(command, "221 bye")
				return
			default:
				say(command, "250 ok")
			}
		}
	})
}

// A mail is sent when the server says so of the mail. The word for another
// moment, as of a server that is one answer behind, is no word on it.
func TestBugMAIL07AnswersOutOfTurn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command, answer string
		want            event.Outcome
		status          int
	}{
		{"", "250 here", event.Transient, 0},
		{"", "354 here", event.Transient, 0},
		{"EHLO", "220 here", event.Transient, 0},
		{"AUTH", "250 ok", event.Transient, 0},
		{"MAIL", "354 go on", event.Transient, 0},
		{"MAIL", "220 here", event.Transient, 0},
		{"RCPT", "354 go on", event.Transient, 0},
		{"RCPT", "235 welcome", event.Transient, 0},
		{"DATA", "250 ok", event.Transient, 0},
		{"DATA", "221 bye", event.Transient, 0},
		{"DATA", "250", event.Transient, 0},
		{"DATA", "999 what", event.Transient, 0},
		{".", "354 go on", event.Unknown, 0},
		{".", "150 well", event.Unknown, 0},
		{".", "999 what", event.Unknown, 0},
		{".", "451 later", event.Transient, 451},
		{".", "251 forwarded", event.OK, 251},
		{"RCPT", "251 forwarded", event.OK, 250},
		{"QUIT", "500 what", event.OK, 250},
	} {
		t.Run(c.command+" "+c.answer, func(t *testing.T) {
			t.Parallel()
			address := wordsOfServer(t, map[string]string{c.command: c.answer, "HELO": c.answer})
			m := mailerAt(t, address, func(cfg *config.SMTP) {
				cfg.Timeout = config.Duration(2 * time.Second)
				if c.command == "AUTH" {
					withLogin(cfg)
					cfg.TLS = "none"
				}
			})
			result := m.Attempt(t.Context(), mailShipment(t, hello), time.Now())
			if result.Attempt.Outcome != c.want || result.Attempt.Status != c.status || result.Wrote != (c.want != event.Transient || c.status != 0) {
				t.Fatalf("%+v, wrote %t", result.Attempt, result.Wrote)
			}
			code, _, _ := strings.Cut(c.answer, " ")
			if c.status == 0 && (!strings.Contains(result.Attempt.Error, code) || !strings.Contains(result.Attempt.Error, "does not speak SMTP")) {
				t.Errorf("error %q", result.Attempt.Error)
			}
		})
	}
}

// A code alone is an answer like any other (RFC 5321, 4.2).
func TestBugMAIL07BareCodes(t *testing.T) {
	t.Parallel()
	for code, c := range map[string]struct {
		want   event.Outcome
		status int
	}{"250": {event.OK, 250}, "250-a\r\n250": {event.OK, 250}, "451": {event.Transient, 451}, "550": {event.Permanent, 550}} {
		address := wordsOfServer(t, map[string]string{"AUTH": "235", "MAIL": "250", "RCPT": "250", "DATA": "354", ".": code, "QUIT": "221"})
		m := mailerAt(t, address, func(cfg *config.SMTP) { withLogin(cfg); cfg.TLS = "none" })
		result := m.Attempt(t.Context(), mailShipment(t, hello), time.Now())
		if result.Attempt.Outcome != c.want || result.Attempt.Status != c.status {
			t.Errorf("%q: %+v", code, result.Attempt)
		}
	}
}

// What a server wants first is named with the key that gives it.
func TestGateD7WantsMore(t *testing.T) {
	t.Parallel()
	address := wordsOfServer(t, map[string]string{"MAIL": "530 5.7.0 not yet"})
	for _, login := range []bool{false, true} {
		m := mailerAt(t, address, func(cfg *config.SMTP) {
			if login {
				withLogin(cfg)
				cfg.TLS = "none"
			}
		})
		result := m.Attempt(t.Context(), mailShipment(t, hello), time.Now())
		if result.Attempt.Outcome != event.Permanent || !strings.Contains(result.Attempt.Error, `tls = "starttls"`) ||
			strings.Contains(result.Attempt.Error, "username") == login {
			t.Errorf("login %t: %+v", login, result.Attempt)
		}
	}
}
