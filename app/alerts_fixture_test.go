package app

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
	"creel/store"
)

// premises is an app on a fake clock whose loops a test steps, with a real mail
// server and a real endpoint that are told of trouble.
type premises struct {
	*App
	t      testing.TB
	clock  *testkit.Clock
	file   string
	mail   *testkit.MailServer
	ops    *testkit.Destination
	app    *testkit.Destination
	logs   *testkit.Log
	events int
	mails  int // heard so far
	posts  int
	passed *time.Duration // by a clock that can not be set; nil where there is none
	zone   *time.Location // of the clock; nil is UTC
}

const premisesConfig = `
listen   = "127.0.0.1:0"
database = "creel.db"

[admin]
listen     = "127.0.0.1:0"
public_url = "https://example.com/creel/"

[smtp]
host = "%s"
from = "creel@example.com"
tls  = "none"

[alerts]
to = ["owner@example.com", "destination:ops"]

[[source]]
name    = "shop"
secrets = ["env:SHOP_SECRET"]
` + testkit.PlainVerify + `
[source.signals]
%s

[[rule]]
name    = "good"
match   = { source = "shop", types = ["order.*"] }
forward = { to = "app" }

[[rule]]
name  = "bad"
match = { source = "shop", types = ["bad"] }
  [rule.record]
  kind   = "order"
  fields = { id = "{body.missing}" }

[destination.app]
url = "%s"

[destination.ops]
url = "%s"
`

func newPremises(t testing.TB, signals string) *premises {
	t.Helper()
	p := &premises{t: t, clock: testkit.NewClock(time.Date(2026, 3, 7, 22, 0, 0, 0, time.UTC)),
		mail: testkit.NewMailServer(t, testkit.MailOptions{}), ops: testkit.NewDestination(t), app: testkit.NewDestination(t),
		logs: &testkit.Log{}, file: filepath.Join(t.TempDir(), "creel.toml")}
	text := fmt.Sprintf(premisesConfig, p.mail.Addr, signals, p.app.URL, p.ops.URL)
	if err := os.WriteFile(p.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.open()
	t.Cleanup(func() { _ = p.stack.unwind(context.Background()) })
	return p
}

// newSteady is premises whose clock can be told from the time that passes.
func newSteady(t testing.TB, signals string) *premises {
	t.Helper()
	p := newPremises(t, signals)
	p.passed = new(time.Duration)
	p.restart()
	return p
}

func (p *premises) open() {
	p.t.Helper()
	env := func(name string) (string, bool) { return "a-secret-that-the-shop-knows", name == "SHOP_SECRET" }
	cfg, file, problems := config.Load(p.file, env)
	if err := problems.Err(); err != nil {
		p.t.Fatal(err)
	}
	opt := Options{Config: cfg, File: file, Env: env, Log: zerolog.New(p.logs), Clock: p.now}
	if p.passed != nil {
		opt.Passed = func() time.Duration { return *p.passed }
	}
	a, err := New(context.Background(), opt)
	if err != nil {
		p.t.Fatal(err)
	}
	p.App = a
	p.must(a.recover(context.Background()))
	p.must(a.tally.Restore(context.Background()))
}

func (p *premises) now() time.Time {
	if p.zone != nil {
		return p.clock.Now().In(p.zone)
	}
	return p.clock.Now()
}

// restart ends the server in an orderly way, and starts the next.
func (p *premises) restart() {
	p.t.Helper()
	p.stop()
	p.open()
}

func (p *premises) stop() {
	p.t.Helper()
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	p.signals.Run(stopped)
	p.tally.Run(stopped)
	p.must(p.stack.unwind(context.Background()))
}

func (p *premises) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// receive stores events of a type, one receipt each.
func (p *premises) receive(kind string, n int) {
	p.t.Helper()
	for range n {
		p.events++
		p.again(kind, p.events)
	}
}

// again stores the event of a number, another time where it was there before.
func (p *premises) again(kind string, number int) {
	p.t.Helper()
	body := fmt.Sprintf(`{"id":"evt_%d","type":%q,"canary":"canary-in-a-body"}`, number, kind)
	sum := sha256.Sum256([]byte(body))
	item := event.Item{Key: event.Key{Source: "shop", ID: fmt.Sprintf("evt_%d", number)}, Type: kind, State: event.Pending}
	copy(item.Content[:], sum[:])
	_, err := inbox{p.App}.Accept(context.Background(), &event.Receipt{Source: "shop", Origin: event.FromWebhook, At: p.clock.Now(),
		Body: []byte(body), Header: "Content-Type: application/json\n", Items: []event.Item{item}})
	p.must(err)
}

// work applies what is due.
func (p *premises) work() {
	p.t.Helper()
	_, err := p.worker.Step(context.Background(), p.clock.Now())
	p.must(err)
}

// send lets go out what is due, and waits for it.
func (p *premises) send() {
	p.t.Helper()
	ctx := context.Background()
	testkit.Poll(p.t, 30*time.Second, "the dispatcher to be through", func() bool {
		next, err := p.dispatcher.Step(ctx, p.clock.Now())
		p.must(err)
		stats, err := p.store.Stats(ctx)
		p.must(err)
		return stats.Deliveries[event.DeliverySending] == 0 && (next.IsZero() || next.After(p.clock.Now()))
	})
}

// pass lets time pass, minute by minute or in larger steps where it is long, with
// the loops that run by it.
func (p *premises) pass(d time.Duration, idle bool) {
	p.t.Helper()
	step := time.Minute
	if d > 2*time.Hour {
		step = 10 * time.Minute
	}
	for end := p.clock.Now().Add(d); p.clock.Now().Before(end); {
		p.advance(min(step, end.Sub(p.clock.Now())))
		if !idle {
			p.work()
		}
		p.must(p.signals.Step(context.Background(), p.clock.Now()))
		p.send()
		_, err := p.tally.Step(context.Background(), p.clock.Now())
		p.must(err)
	}
}

func (p *premises) advance(d time.Duration) {
	p.clock.Advance(d)
	if p.passed != nil {
		*p.passed += d
	}
}

// told are the subjects of the alerts that came since the last call, which both
// recipients must have got alike.
func (p *premises) told() []string {
	p.t.Helper()
	byMail, byPost := []string{}, []string{}
	mails, posts := p.mail.Mails(), p.ops.Requests()
	for _, m := range mails[p.mails:] {
		read, err := mail.ReadMessage(strings.NewReader(string(m.Data)))
		p.must(err)
		text, err := io.ReadAll(quotedprintable.NewReader(read.Body))
		p.must(err)
		p.isHarmless(string(m.Data) + string(text))
		byMail = append(byMail, read.Header.Get("Subject"))
	}
	for _, r := range posts[p.posts:] {
		var alert event.Alert
		if err := json.Unmarshal(r.Body, &alert); err != nil {
			p.t.Fatalf("%v: %s", err, r.Body)
		}
		p.isHarmless(string(r.Body))
		if !strings.HasPrefix(alert.URL, "https://example.com/creel/alerts/") || alert.Text == "" || alert.Since == "" {
			p.t.Errorf("an alert says too little: %+v", alert)
		}
		byPost = append(byPost, alert.Subject)
	}
	p.mails, p.posts = len(mails), len(posts)
	// Deliveries that are due together go out side by side, in no order.
	slices.Sort(byMail)
	slices.Sort(byPost)
	if fmt.Sprint(byMail) != fmt.Sprint(byPost) {
		p.t.Errorf("by mail %q, by HTTP %q", byMail, byPost)
	}
	return byMail
}

func (p *premises) isHarmless(text string) {
	p.t.Helper()
	if strings.Contains(text, "canary") || strings.Contains(text, "a-secret-that") {
		p.t.Errorf("an alert says too much:\n%s", text)
	}
}

func (p *premises) wantTold(what string, wanted ...string) {
	p.t.Helper()
	slices.Sort(wanted)
	if got := p.told(); fmt.Sprint(got) != fmt.Sprint(wanted) {
		p.t.Errorf("%s: told %q, want %q", what, got, wanted)
	}
}

// signal is the one of a name and subject, as the page shows it.
func (p *premises) signal(name event.SignalName, subject string) event.Signal {
	p.t.Helper()
	for _, s := range p.Signals() {
		if s.Name == name && s.Subject == subject {
			return s
		}
	}
	p.t.Fatalf("there is no signal %s of %q", name, subject)
	return event.Signal{}
}

func (p *premises) wantFiring(firing bool, name event.SignalName, subject string) {
	p.t.Helper()
	if s := p.signal(name, subject); s.Firing != firing || firing == s.Since.IsZero() {
		p.t.Errorf("the signal is %+v", s)
	}
}

func (p *premises) open1() []event.OpenIncident {
	p.t.Helper()
	list, err := p.store.Incidents(context.Background(), true)
	p.must(err)
	return list
}

func (p *premises) deliveries(state event.DeliveryState) int {
	p.t.Helper()
	list, err := p.store.Deliveries(context.Background(), store.DeliveryFilter{State: state}, event.Page{})
	p.must(err)
	return len(list)
}
