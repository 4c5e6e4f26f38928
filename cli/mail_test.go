package cli_test

import (
	"bytes"
	"fmt"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"creel/internal/testkit"
)

// mailing is a site whose rule sends a mail through a server that demands
// STARTTLS and a login.
func mailing(t *testing.T, server *testkit.MailServer, authority *testkit.Authority, password string) *site {
	t.Helper()
	s := newSite(t, "")
	s.configure(t, plain(s.app.URL, "")+fmt.Sprintf(`
[smtp]
host     = %q
from     = "Creel <creel@example.com>"
username = "creel"
password = "env:SMTP_PASSWORD"

[[rule]]
name  = "receipt"
match = { source = "shop", types = ["paid"] }
key   = "{body.invoice}/receipt"
  [rule.email]
  to        = "{body.to}"
  subject   = "Invoice {body.invoice}: 小明"
  text_file = "receipt.txt"
  html      = "<p>Thank you, {body.name}</p>"
`, server.Addr))
	for name, data := range map[string][]byte{"receipt.txt": []byte("Thank you, {body.name}\n.\n"), "ca.pem": authority.PEM} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Setenv("SMTP_PASSWORD", password)
	s.Setenv("SSL_CERT_FILE", filepath.Join(s.Dir, "ca.pem"))
	return s
}

// TestGateD7Mail takes a mail from an event to its reader: one, however often
// the event or another one of the same invoice comes.
func TestGateD7Mail(t *testing.T) {
	t.Parallel()
	const password = "a-password-that-nobody-may-see"
	authority := testkit.NewAuthority(t)
	server := testkit.NewMailServer(t, testkit.MailOptions{Authority: authority, Username: "creel", Password: password})
	s := mailing(t, server, authority, password)
	if out := command(t, s.Process, 0, "check", "-c", "creel.toml"); strings.Contains(out, "smtp") {
		t.Errorf("check: %s", out)
	}
	s.Start(t)
	for _, id := range []string{"evt_1", "evt_1", "evt_2", "evt_3"} {
		invoice := "in_1"
		if id == "evt_3" {
			invoice = "in_2"
		}
		s.send(t, fmt.Sprintf(`{"id":%q,"type":"paid","invoice":%q,"name":"Ann <b>","to":"ann@example.net"}`, id, invoice))
	}
	mails := server.Wait(t, 2, soon)
	await(t, s.Process, 2, "deliveries", "--destination", "mail", "--state", "sent", "--json")
	if mails = server.Mails(); len(mails) != 2 {
		t.Fatalf("%d mails", len(mails))
	}
	ids := map[string]bool{}
	for _, m := range mails {
		read, err := mail.ReadMessage(bytes.NewReader(m.Data))
		if err != nil {
			t.Fatal(err)
		}
		ids[read.Header.Get("Message-ID")] = true
		if m.To != "ann@example.net" || m.User != "creel" || !m.TLS || !bytes.Contains(m.Data, []byte("Thank you, Ann &lt;b&gt;")) ||
			!bytes.Contains(m.Data, []byte("Thank you, Ann <b>\r\n.\r\n")) {
			t.Errorf("%+v\n%s", m, m.Data)
		}
	}
	if len(ids) != 2 {
		t.Errorf("identities %v", ids)
	}
	for _, d := range lines[deliveryLine](t, s.Process, "deliveries", "--destination", "mail", "--json") {
		if d.State != "sent" || d.Status != 250 || d.Attempts != 1 {
			t.Errorf("%+v", d)
		}
	}

	// A refused recipient is a dead letter of its own and holds nobody up.
	server.Script(testkit.MailAnswer{Stage: testkit.AtTo, Code: 550, Enhanced: [3]int{5, 1, 1}, Text: "nobody of that name"}, testkit.MailAnswer{})
	s.send(t, `{"id":"evt_4","type":"paid","invoice":"in_3","name":"Bob","to":"nobody@example.net"}`)
	await(t, s.Process, 1, "deliveries", "--destination", "mail", "--state", "dead", "--json")
	dead := lines[deliveryLine](t, s.Process, "deliveries", "--destination", "mail", "--state", "dead", "--json")[0]
	if dead.Status != 550 || !strings.Contains(dead.Error, "nobody of that name") {
		t.Errorf("%+v", dead)
	}
	command(t, s.Process, 0, "replay", "shop//evt_4", "--reason", "there is now")
	server.Wait(t, 3, soon)
	await(t, s.Process, 3, "deliveries", "--destination", "mail", "--state", "sent", "--json")

	// Mail is a destination like any other to its operator.
	command(t, s.Process, 0, "pause", "mail", "--reason", "the server moves")
	s.send(t, `{"id":"evt_5","type":"paid","invoice":"in_4","name":"Eve","to":"eve@example.net"}`)
	await(t, s.Process, 1, "deliveries", "--destination", "mail", "--state", "ready", "--json")
	if out := command(t, s.Process, 0, "health", "--json"); !strings.Contains(out, `"destination_paused","about":"mail"`) || strings.Count(out, `"what"`) != 1 {
		t.Errorf("health: %s", out)
	}
	command(t, s.Process, 0, "resume", "mail", "--reason", "it has moved")
	server.Wait(t, 4, soon)
	await(t, s.Process, 4, "deliveries", "--destination", "mail", "--state", "sent", "--json")
	if exit := s.Terminate(); exit.Code != 0 {
		t.Errorf("stop: %+v", exit)
	}
	if shown := string(s.Stdout()) + string(s.Stderr()); strings.Contains(shown, password) || strings.Contains(shown, "Ann") {
		t.Error("the password or the mail's text was logged")
	}
	if got := len(server.Mails()); got != 4 {
		t.Errorf("%d mails", got)
	}
}

// TestGateD7WithoutAServer: a rule that sends mail needs a server.
func TestGateD7WithoutAServer(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.configure(t, plain(s.app.URL, "")+`
[[rule]]
name = "receipt"
  [rule.email]
  to      = "a@example.net"
  subject = "s"
  text    = "t"
`)
	out := command(t, s.Process, 2, "check", "-c", "creel.toml")
	if !strings.Contains(out, "rule[0].email: there is no mail server (write [smtp]") {
		t.Error(out)
	}
}
