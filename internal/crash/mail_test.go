package crash

import (
	"bytes"
	"fmt"
	"net/mail"
	"testing"
	"time"

	"creel/internal/testkit"
)

// TestGateD7Kill kills the server while the mail server has a mail and has not
// answered: one more goes out under the same Message-ID, and where that ends
// so too, a person is asked; with review at once.
func TestGateD7Kill(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		setting string
		kills   int
		mails   int
		state   string
	}{
		"once":        {`on_doubt = "retry"`, 1, 2, "sent"},
		"twice":       {`on_doubt = "retry"`, 2, 2, "in_doubt"},
		"with review": {`on_doubt = "review"`, 1, 1, "in_doubt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.NewMailServer(t, testkit.MailOptions{})
			silent := testkit.MailAnswer{Stage: testkit.AtMessage, Hang: true}
			server.Script(append([]testkit.MailAnswer{silent, silent}[:want.kills:want.kills], testkit.MailAnswer{})...)
			destination := testkit.NewDestination(t)
			p, canary := serve(t, destination.URL, fmt.Sprintf(`
[smtp]
host = %q
from = "creel@example.com"
%s
[[rule]]
name = "note"
  [rule.email]
  to = "ann@example.net"
  subject = "{id}"
  text = "{body.note}"
`, server.Addr, want.setting))
			p.Start(t)
			sender := testkit.Sender{URL: p.URL("/in/load"), Secret: canary.Secret, Sign: testkit.SignPlain}
			body := `{"id":"evt_1","type":"order.paid","note":"` + canary.Payload + `"}`
			if status, answer := sender.Send(t, "", []byte(body)); status != 200 {
				t.Fatalf("answered %d %q", status, answer)
			}
			for n := range want.kills {
				server.Wait(t, n+1, 20*time.Second)
				p.Kill()
				p.Start(t)
			}
			testkit.Poll(t, 20*time.Second, "the mail to be "+want.state, func() bool {
				return look(t, p.Dir, `SELECT count(*) FROM delivery WHERE destination = 'mail' AND state = ?`, want.state) == 1
			})
			if exit := p.Terminate(); exit.Code != 0 {
				t.Errorf("stop: %+v", exit)
			}
			mails := server.Mails()
			if len(mails) != want.mails {
				t.Fatalf("%d mails, want %d", len(mails), want.mails)
			}
			for _, m := range mails {
				if id, first := idOf(t, m), idOf(t, mails[0]); id == "" || id != first {
					t.Errorf("sent as %q and %q", first, id)
				}
			}
			sound(t, p.Dir)
		})
	}
}

func idOf(t *testing.T, m testkit.Mail) string {
	t.Helper()
	read, err := mail.ReadMessage(bytes.NewReader(m.Data))
	if err != nil {
		t.Fatal(err)
	}
	return read.Header.Get("Message-ID")
}
