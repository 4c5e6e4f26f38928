package jobs

import (
	"bytes"
	"context"
	"fmt"
	"net/mail"
	"slices"
	"testing"
	"time"

	"creel/config"
	"creel/deliver"
	"creel/event"
	"creel/internal/testkit"
)

// useMail makes a mail server the fixture's one route.
func (f *fixture) useMail(server *testkit.MailServer, doubt string) {
	f.t.Helper()
	cfg := config.Default().SMTP
	cfg.Host, cfg.From, cfg.OnDoubt = server.Addr, "creel@example.com", doubt
	m, problems := deliver.NewMailer(cfg, "smtp", deliver.Options{
		Env: func(string) (string, bool) { return "", false }, Clock: f.clock.Now})
	if err := problems.Err(); err != nil {
		f.t.Fatal(err)
	}
	f.routes = []Route{RouteToMail(m, BuiltInPolicies()[PolicyDefault])}
	f.dispatcher()
}

// mail stores n new events, each with a mail of its own.
func (f *fixture) mail(n int) {
	f.t.Helper()
	f.apply(n, func(work event.Work) event.Effect {
		return event.Email{Key: work.Key.String(), Rule: "r", To: fmt.Sprintf("u%d@example.net", work.Seq), Subject: "Hi", Text: "there"}
	})
}

// apply stores n new events, each done with one effect.
func (f *fixture) apply(n int, effect func(event.Work) event.Effect) {
	f.t.Helper()
	ctx, now := context.Background(), f.clock.Now()
	receipt := &event.Receipt{Source: "s", Origin: event.FromWebhook, At: now, Body: []byte(`{}`)}
	for range n {
		f.events++
		receipt.Items = append(receipt.Items, event.Item{Key: event.Key{Source: "s", ID: fmt.Sprintf("evt_%06d", f.events)},
			Type: "t", State: event.Pending, Content: [16]byte{byte(f.events)}})
	}
	if _, err := f.store.Accept(ctx, receipt); err != nil {
		f.t.Fatal(err)
	}
	_, works, err := f.store.Settle(ctx, now, nil, 256)
	if err != nil || len(works) != n {
		f.t.Fatalf("%d claimed: %v", len(works), err)
	}
	finishes := make([]event.Finish, n)
	for i, work := range works {
		finishes[i] = event.Finish{Seq: work.Seq, Claim: work.Claim, Run: work.Run, State: event.Done, Effects: []event.Effect{effect(work)}}
	}
	if _, _, err := f.store.Settle(ctx, now, finishes, 0); err != nil {
		f.t.Fatal(err)
	}
}

// oneIdentity checks that all mails have one Message-ID.
func oneIdentity(t *testing.T, mails []testkit.Mail) {
	t.Helper()
	for _, m := range mails {
		if first, other := messageID(t, mails[0]), messageID(t, m); first != other {
			t.Errorf("sent as %s and %s", first, other)
		}
	}
}

func messageID(t *testing.T, m testkit.Mail) string {
	t.Helper()
	read, err := mail.ReadMessage(bytes.NewReader(m.Data))
	if err != nil {
		t.Fatal(err)
	}
	return read.Header.Get("Message-ID")
}

// A mail whose answer was lost goes out once more under the same Message-ID;
// what is lost again waits for a person, and so does the first with review.
func TestGateD7OnDoubt(t *testing.T) {
	t.Parallel()
	lost, fine := testkit.MailAnswer{Stage: testkit.AtMessage, Drop: true}, testkit.MailAnswer{}
	later := testkit.MailAnswer{Stage: testkit.AtTo, Code: 450, Text: "later"}
	for name, c := range map[string]struct {
		doubt  string
		script []testkit.MailAnswer
		state  event.DeliveryState
		mails  int
	}{
		"retry, lost once":                {"retry", []testkit.MailAnswer{lost, fine}, event.DeliverySent, 2},
		"retry, lost twice":               {"retry", []testkit.MailAnswer{lost, lost, fine}, event.DeliveryInDoubt, 2},
		"retry, lost, refused, lost":      {"retry", []testkit.MailAnswer{lost, later, lost, fine}, event.DeliveryInDoubt, 2},
		"retry, refused, lost, then sent": {"retry", []testkit.MailAnswer{later, lost, fine}, event.DeliverySent, 2},
		"review":                          {"review", []testkit.MailAnswer{lost, fine}, event.DeliveryInDoubt, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.NewMailServer(t, testkit.MailOptions{})
			server.Script(c.script...)
			f := newFixture(t)
			f.useMail(server, c.doubt)
			f.mail(1)
			f.runUntil(startTime().Add(6 * time.Hour))
			mails := server.Mails()
			if d := f.delivery(1); d.State != c.state || len(mails) != c.mails {
				t.Errorf("%d mails, %+v", len(mails), d)
			}
			oneIdentity(t, mails)
		})
	}
}

// A person who sends a mail in doubt again begins a new run: it may be lost
// and repeated as before.
func TestGateD7SentAgain(t *testing.T) {
	t.Parallel()
	lost := testkit.MailAnswer{Stage: testkit.AtMessage, Drop: true}
	server := testkit.NewMailServer(t, testkit.MailOptions{})
	server.Script(lost, lost, lost, testkit.MailAnswer{})
	f := newFixture(t)
	f.useMail(server, "retry")
	f.mail(1)
	f.runUntil(startTime().Add(time.Hour))
	if _, err := f.store.Decide(context.Background(), f.clock.Now(), event.Action{Kind: event.ActionSendAgain, Actor: "t", Reason: "it never came", Target: "1"}); err != nil {
		t.Fatal(err)
	}
	f.d.lookAgain()
	f.runUntil(startTime().Add(2 * time.Hour))
	if d := f.delivery(1); d.State != event.DeliverySent || d.Run != 2 || len(server.Mails()) != 4 {
		t.Errorf("%d mails, %+v", len(server.Mails()), d)
	}
	oneIdentity(t, server.Mails())
}

// A boot that dies between a mail and its mark repeats it once; one that dies
// so again leaves it to a person.
func TestGateD7Restarts(t *testing.T) {
	t.Parallel()
	server := testkit.NewMailServer(t, testkit.MailOptions{})
	f := newFixture(t)
	f.useMail(server, "retry")
	f.mail(1)
	for n := 1; n <= 2; n++ {
		f.d.lookAgain()
		if _, err := f.d.Step(context.Background(), f.clock.Now()); err != nil {
			t.Fatal(err)
		}
		server.Wait(t, n, 10*time.Second)
		testkit.Poll(t, 10*time.Second, "the attempt's end", f.unwritten)
		f.crash()
	}
	f.runUntil(startTime().Add(time.Hour))
	if d := f.delivery(1); d.State != event.DeliveryInDoubt || len(server.Mails()) != 2 {
		t.Errorf("%d mails, %+v", len(server.Mails()), d)
	}
	oneIdentity(t, server.Mails())
}

// A boot that dies leaves no more in doubt than it was sending: mails that were
// claimed and waited for a place were not sent.
func TestGateD7RestartsAhead(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	server := testkit.NewMailServer(t, testkit.MailOptions{})
	server.Script(testkit.MailAnswer{Wait: hold})
	f := newFixture(t)
	f.useMail(server, "retry")
	const mails, boots = 40, 2
	f.mail(mails)
	flying := f.routes[0].InFlight
	var old []*Dispatcher
	for boot := range boots {
		f.d.lookAgain()
		if _, err := f.d.Step(context.Background(), f.clock.Now()); err != nil {
			t.Fatal(err)
		}
		server.Wait(t, (boot+1)*flying, 10*time.Second)
		if sending := f.count(event.DeliverySending); sending != flying {
			t.Errorf("%d are sending, %d can", sending, flying)
		}
		old = append(old, f.d)
		f.crash()
	}
	if doubt := f.count(event.DeliveryInDoubt); doubt > flying {
		t.Errorf("%d in doubt, %d were in flight", doubt, flying)
	}
	close(hold)
	f.runUntil(startTime().Add(time.Hour))
	for _, d := range old {
		testkit.Poll(t, 10*time.Second, "the old boot's attempts", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.flying == 0
		})
	}
	if sent, doubt := f.count(event.DeliverySent), f.count(event.DeliveryInDoubt); sent+doubt != mails || len(server.Mails()) > mails+boots*flying {
		t.Errorf("%d sent, %d in doubt, %d mails", sent, doubt, len(server.Mails()))
	}
}

// A server that is not there, or sends everybody away, is held: nothing dies
// of it. What it says of single recipients holds nothing.
func TestGateD7Outages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer testkit.MailAnswer
		held   bool
		state  event.DeliveryState // after a night, the server being well again
	}{
		"closed":             {testkit.MailAnswer{Stage: testkit.AtGreeting, Drop: true}, true, event.DeliverySent},
		"421":                {testkit.MailAnswer{Stage: testkit.AtGreeting, Code: 421, Text: "going down"}, true, event.DeliverySent},
		"no disk":            {testkit.MailAnswer{Stage: testkit.AtFrom, Code: 452, Enhanced: [3]int{4, 3, 1}, Text: "full"}, true, event.DeliverySent},
		"mailboxes full":     {testkit.MailAnswer{Stage: testkit.AtTo, Code: 452, Enhanced: [3]int{4, 2, 2}, Text: "full"}, false, event.DeliveryDead},
		"nobody of the name": {testkit.MailAnswer{Stage: testkit.AtTo, Code: 550, Enhanced: [3]int{5, 1, 1}, Text: "unknown"}, false, event.DeliveryDead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.NewMailServer(t, testkit.MailOptions{})
			server.Script(c.answer)
			f := newFixture(t)
			f.useMail(server, "retry")
			f.mail(6)
			f.runUntil(startTime().Add(8 * time.Hour))
			if held := f.health(event.Mail).State == event.DestinationDisabled; held != c.held {
				t.Errorf("held: %t", held)
			}
			server.Script()
			f.runUntil(startTime().Add(9 * time.Hour))
			for id := range int64(6) {
				if d := f.delivery(id + 1); d.State != c.state {
					t.Errorf("%+v", d)
				}
			}
			if c.held {
				if got := f.outages(event.Mail); len(got) != 1 {
					t.Errorf("incidents %+v", got)
				}
			}
		})
	}
}

// A refusal for good is one attempt, one for now is tried on the schedule.
func TestBugMAIL07Schedule(t *testing.T) {
	t.Parallel()
	for code, want := range map[int][]time.Duration{450: schedules()[PolicyDefault], 550: {0}} {
		server := testkit.NewMailServer(t, testkit.MailOptions{})
		server.Script(testkit.MailAnswer{Stage: testkit.AtTo, Code: code, Text: "no"})
		f := newFixture(t)
		f.useMail(server, "retry")
		f.mail(1)
		f.runUntil(startTime().Add(24 * time.Hour))
		if got := f.offsets(1); !slices.Equal(got, want) {
			t.Errorf("%d: attempts at %v, want %v", code, got, want)
		}
		if d := f.delivery(1); d.State != event.DeliveryDead || d.Status != code {
			t.Errorf("%d: %+v", code, d)
		}
		if got := f.incidents(event.CauseDeadDelivery); len(got) != 1 {
			t.Errorf("%d: incidents %+v", code, got)
		}
	}
}
