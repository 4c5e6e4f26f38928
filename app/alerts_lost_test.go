package app

import (
	"net/mail"
	"strings"
	"testing"
	"time"

	"creel/event"
	"creel/internal/testkit"
)

// An alert that could not be told, and one that was told and not acknowledged,
// are both told again: what came twice came under one identity, and the failing
// raises no alert of its own.
func TestAlertsThatFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mail  testkit.MailAnswer
		post  testkit.Answer
		mails int // that were taken
	}{
		"not told":                  {testkit.MailAnswer{Stage: testkit.AtTo, Code: 450, Text: "later"}, testkit.Answer{Status: 503}, 1},
		"told, and the answer lost": {testkit.MailAnswer{Stage: testkit.AtMessage, Drop: true}, testkit.Answer{Fault: testkit.Close}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPremises(t, `silence = "0s"`)
			p.mail.Script(c.mail, testkit.MailAnswer{})
			p.ops.Script(c.post, testkit.Answer{})
			p.receive("bad", 1)
			p.work()
			p.pass(time.Hour, false)
			mails, posts := p.mail.Mails(), p.ops.Requests()
			if len(mails) != c.mails || len(posts) != 2 || p.deliveries(event.DeliverySent) != 2 || len(p.open1()) != 1 {
				t.Fatalf("%d mails, %d posts, %d sent, %+v", len(mails), len(posts), p.deliveries(event.DeliverySent), p.open1())
			}
			if posts[0].ID() == "" || posts[0].ID() != posts[1].ID() || string(posts[0].Body) != string(posts[1].Body) {
				t.Errorf("told as %s %s and %s %s", posts[0].ID(), posts[0].Body, posts[1].ID(), posts[1].Body)
			}
			for _, m := range mails {
				if id, first := messageID(t, m), messageID(t, mails[0]); id == "" || id != first {
					t.Errorf("told as %q and %q", first, id)
				}
			}
		})
	}
}

func messageID(t *testing.T, m testkit.Mail) string {
	t.Helper()
	read, err := mail.ReadMessage(strings.NewReader(string(m.Data)))
	if err != nil {
		t.Fatal(err)
	}
	return read.Header.Get("Message-ID")
}
