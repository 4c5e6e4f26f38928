// Package examples_test runs each example that is a configuration alone, as
// its README says, on the real binary. Nobody imports it.
package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"creel/event"
	"creel/internal/testkit"
	"creel/store"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const soon = 20 * time.Second

// example is an example in a folder of its own, with ports that are free.
type example struct {
	*testkit.Process
	t      *testing.T
	sender testkit.Sender
}

// newExample reads the configuration of an example. What is replaced is what
// an owner would write differently too.
func newExample(t *testing.T, folder string, replace []string, env ...string) *example {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "creel.toml"))
	if err != nil {
		t.Fatal(err)
	}
	configuration := strings.NewReplacer(append(replace, `"127.0.0.1:8080"`, `"127.0.0.1:0"`, `"127.0.0.1:8081"`, `"127.0.0.1:0"`)...).Replace(string(text))
	p := testkit.NewProcess(t, configuration, append(env, "CREEL_LOG_FORMAT=json")...)
	if code, stdout, stderr := p.Run(t, "check"); code != 0 {
		t.Fatalf("check: exit %d\n%s%s", code, stdout, stderr)
	}
	p.Start(t)
	return &example{Process: p, t: t}
}

// send sends bodies one after another and expects each to be acknowledged.
func (e *example) send(bodies ...string) {
	e.t.Helper()
	for _, body := range bodies {
		if status, answer := e.sender.Send(e.t, "", []byte(body)); status != 200 {
			e.t.Fatalf("answered %d %q to %s", status, answer, body)
		}
	}
}

// row is a line of a list with --json.
type row struct {
	ID, State, Error, Destination string
	Attempts, Duplicates          int
}

func (e *example) list(args ...string) map[string]row {
	e.t.Helper()
	_, stdout, _ := e.Run(e.t, append(args, "--json")...)
	rows := map[string]row{}
	for line := range strings.Lines(string(stdout)) {
		var one struct {
			row
			ID json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			e.t.Fatalf("%v: %s", err, line)
		}
		one.row.ID = strings.Trim(string(one.ID), `"`)
		rows[one.row.ID] = one.row
	}
	return rows
}

// await waits until each event has its state.
func (e *example) await(states map[string]event.State) {
	e.t.Helper()
	ok := testkit.Await(soon, func() bool {
		rows := e.list("events")
		for id, state := range states {
			if rows[id].State != string(state) {
				return false
			}
		}
		return true
	})
	if !ok {
		e.t.Fatalf("the events are %+v", e.list("events"))
	}
}

func (e *example) read() *store.Reader {
	e.t.Helper()
	reader, err := store.OpenRead(e.t.Context(), filepath.Join(e.Dir, "creel.db"))
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = reader.Close() })
	return reader
}

func (e *example) stop() {
	e.t.Helper()
	if exit := e.Terminate(); exit.Code != 0 {
		e.t.Errorf("stop: %+v", exit)
	}
}

func stripeEvent(id, kind, object string) string {
	return `{"id":"` + id + `","object":"event","type":"` + kind + `","created":1767225600,"livemode":false,"data":{"object":` + object + `}}`
}

// TestGateA1Credits tells one paid invoice under two ids, several times, and
// its refund before and after.
func TestGateA1Credits(t *testing.T) {
	t.Parallel()
	mail := testkit.NewMailServer(t, testkit.MailOptions{})
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	e := newExample(t, "credits", []string{"127.0.0.1:1025", mail.Addr}, "STRIPE_WEBHOOK_SECRET="+secret)
	e.sender = testkit.Sender{URL: e.URL("/in/stripe"), Secret: secret, Sign: testkit.SignStripe}
	paid, err := os.ReadFile("credits/paid.json")
	if err != nil {
		t.Fatal(err)
	}
	invoice := `{"id":"in_1","object":"invoice","customer":"cus_1","customer_email":"jenny@example.com","number":"A-0001","amount_paid":2000}`
	e.send(string(paid), string(paid), stripeEvent("evt_2", "invoice.payment_succeeded", invoice), string(paid),
		stripeEvent("evt_3", "invoice.paid", strings.NewReplacer("in_1", "in_2", "A-0001", "A-0002").Replace(invoice)))
	e.await(map[string]event.State{"evt_credits_1": event.Done, "evt_2": event.Done, "evt_3": event.Done})
	if got := e.list("events")["evt_credits_1"].Duplicates; got != 2 {
		t.Errorf("%d duplicates are counted", got)
	}
	balance := func() int64 {
		balances, err := e.read().Balances(t.Context(), "cus_1", event.Balance{}, 10)
		if err != nil || len(balances) != 1 {
			t.Fatalf("balances: %+v, %v", balances, err)
		}
		return balances[0].Amount
	}
	if got := balance(); got != 200 {
		t.Errorf("two invoices gave %d credits", got)
	}
	if mails := mail.Wait(t, 2, soon); len(mails) != 2 {
		t.Errorf("%d mails arrived", len(mails))
	}
	refund := `{"id":"ch_1","object":"charge","invoice":"in_1","refunded":true}`
	e.send(stripeEvent("evt_4", "charge.refunded", refund), stripeEvent("evt_5", "charge.refunded", refund))
	e.await(map[string]event.State{"evt_4": event.Done, "evt_5": event.Done})
	if got := balance(); got != 100 {
		t.Errorf("a refund left %d credits", got)
	}
	if code, _, stderr := e.Run(t, "replay", "--source", "stripe", "--reason", "to see that nothing happens twice"); code != 0 {
		t.Errorf("replay: exit %d, %s", code, stderr)
	}
	e.await(map[string]event.State{"evt_credits_1": event.Done, "evt_2": event.Done, "evt_3": event.Done, "evt_4": event.Done, "evt_5": event.Done})
	if got := balance(); got != 100 {
		t.Errorf("a replay left %d credits", got)
	}
	e.stop()
	if mails := mail.Mails(); len(mails) != 2 {
		t.Errorf("%d mails arrived", len(mails))
	}
}

// TestGateA10FeedbackAlerts tells one feedback again and again, and escalates
// it.
func TestGateA10FeedbackAlerts(t *testing.T) {
	t.Parallel()
	team := testkit.NewDestination(t)
	const secret = "a-secret-that-the-sender-shows"
	e := newExample(t, "feedback-alerts", []string{"http://127.0.0.1:3000/team-channel", team.URL},
		"FEEDBACK_SECRET="+secret, "TEAM_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	e.sender = testkit.Sender{URL: e.URL("/in/feedback"), Secret: secret, Sign: testkit.SignPlain}
	told := func(id, kind, feedback string) string {
		return `{"id":"` + id + `","type":"feedback.` + kind + `","project":"p1","feedback":{"id":"` + feedback + `","text":"told by ` + id + `"}}`
	}
	e.send(told("e1", "created", "f1"), told("e1", "created", "f1"), told("e2", "updated", "f1"), told("e3", "escalated", "f1"),
		told("e4", "escalated", "f1"), told("e5", "created", "f2"))
	e.await(map[string]event.State{"e1": event.Done, "e2": event.Done, "e3": event.Done, "e4": event.Done, "e5": event.Done})
	team.Wait(t, 3, soon)
	count := func(kind string) int {
		records, err := e.read().Records(t.Context(), store.RecordFilter{Kind: kind}, event.Page{})
		if err != nil {
			t.Fatal(err)
		}
		return len(records)
	}
	if alerts, escalations := count("feedback-alert"), count("feedback-escalation"); alerts != 2 || escalations != 1 {
		t.Errorf("%d alerts and %d escalations", alerts, escalations)
	}
	e.stop()
	if n := len(team.Counts()); n != 3 || team.Count() != 3 {
		t.Errorf("the team got %d messages about %d operations", team.Count(), n)
	}
}

// TestOrders tells the steps of an order backwards, and takes more stock than
// there is.
func TestOrders(t *testing.T) {
	t.Parallel()
	folder, err := filepath.Abs("orders/sql")
	if err != nil {
		t.Fatal(err)
	}
	const secret = "a-secret-that-the-shop-knows"
	// What comes too early is tried again within a moment instead of seconds.
	brief := "[worker]\nretry = \"brief\"\n\n[retry.brief]\ndelays = [\"50ms\", \"100ms\", \"200ms\", \"400ms\", \"800ms\"]\n\n[sql]"
	e := newExample(t, "orders", []string{`migrations = "sql"`, `migrations = "` + folder + `"`, "[sql]", brief}, "SHOP_SECRET="+secret)
	e.sender = testkit.Sender{URL: e.URL("/in/shop"), Secret: secret, Sign: testkit.SignPlain}
	e.send(`{"id":"o3","type":"order.shipped","order":"1001"}`, `{"id":"o2","type":"order.paid","order":"1001"}`,
		`{"id":"o1","type":"order.created","order":"1001","total":"12.50"}`, `{"id":"o4","type":"order.paid","order":"1001"}`)
	e.await(map[string]event.State{"o1": event.Done, "o2": event.Done, "o3": event.Done, "o4": event.Done})
	history, err := e.read().ObjectState(t.Context(), "shop//1001")
	if err != nil || history.State != "shipped" {
		t.Errorf("the order is %+v, %v", history, err)
	}
	move := func(id, sku, by string) string {
		return `{"id":"` + id + `","type":"stock.moved","movement":"m-` + id + `","sku":"` + sku + `","by":` + by + `}`
	}
	e.send(move("s1", "A", "5"), move("s2", "A", "-9"), move("s3", "A", "-2"), move("s4", "B", "3"))
	e.await(map[string]event.State{"s1": event.Done, "s2": event.Dead, "s3": event.Pending, "s4": event.Done})
	if code, stdout, stderr := e.Run(t, "lane", "skip", "shop//s2", "--reason", "counted by hand"); code != 0 {
		t.Fatalf("lane skip: exit %d\n%s%s", code, stdout, stderr)
	}
	e.await(map[string]event.State{"s2": event.Dead, "s3": event.Done})
	e.stop()
}

// TestChat tells an order whose customer has a hostile name, and a dispute twice
// under two ids. One server stands for all the tools.
func TestChat(t *testing.T) {
	t.Parallel()
	tools := testkit.NewDestination(t)
	tools.Answer(func(r testkit.Received) testkit.Answer {
		if strings.HasPrefix(r.URL, "/v2/") {
			return testkit.Answer{Status: 202}
		}
		return testkit.Answer{}
	})
	const secret, token = "a-secret-that-the-shop-knows", "a-token-of-the-server"
	var replace []string
	for _, host := range []string{"hooks.slack.com", "discord.com", "ntfy.sh", "api.postmarkapp.com", "events.pagerduty.com"} {
		replace = append(replace, "https://"+host, tools.URL)
	}
	e := newExample(t, "chat", replace, "SHOP_SECRET="+secret, "SLACK_HOOK=T000/B000/XXXX", "DISCORD_HOOK=1234/token",
		"NTFY_TOPIC=a-topic", "POSTMARK_TOKEN="+token, "PAGERDUTY_KEY=0123456789abcdef0123456789abcdef")
	e.sender = testkit.Sender{URL: e.URL("/in/shop"), Secret: secret, Sign: testkit.SignPlain}
	const customer = `Jenny \"<!channel>\" {object}\nO'é`
	const order = `{"number":"1001","total":12.50,"customer":"` + customer + `"}`
	e.send(`{"id":"o1","type":"order.paid","order":`+order+`}`, `{"id":"o2","type":"order.paid","order":`+order+`}`,
		`{"id":"o3","type":"order.disputed","order":`+order+`}`, `{"id":"o4","type":"order.disputed","order":`+order+`}`)
	e.await(map[string]event.State{"o1": event.Done, "o2": event.Done, "o3": event.Done, "o4": event.Done})
	requests := map[string]testkit.Received{}
	for _, r := range tools.Wait(t, 5, soon) {
		requests[r.URL] = r
	}
	e.stop()
	if tools.Count() != 5 {
		t.Errorf("%d requests came", tools.Count())
	}
	line := "Order 1001: 12.50 from " + customer
	alert := requests["/v2/enqueue"]
	for url, want := range map[string]string{
		"/services/T000/B000/XXXX": `{"blocks":[{"text":{"text":"` + line + `","type":"plain_text"},"type":"section"}],"text":"A new order"}`,
		"/api/webhooks/1234/token": `{"allowed_mentions":{"parse":[]},"content":"` + line + `"}`,
		"/a-topic":                 "12.50 from Jenny \"<!channel>\" {object}\nO'é",
		"/email": `{"From":"orders@example.com","MessageStream":"outbound","Subject":"Order 1001","TextBody":"12.50 from ` + customer +
			`","To":"team@example.com"}`,
		"/v2/enqueue": `{"dedup_key":"` + alert.ID() + `","event_action":"trigger","payload":{"custom_details":` + order +
			`,"severity":"critical","source":"shop","summary":"Order 1001 is disputed"},"routing_key":"0123456789abcdef0123456789abcdef"}`,
	} {
		got := requests[url]
		if string(got.Body) != want || got.Method != "POST" || got.Header.Get("X-Signature") != "" {
			t.Errorf("%s: %s %v\ngot  %s\nwant %s", url, got.Method, got.Header, got.Body, want)
		}
	}
	if topic := requests["/a-topic"].Header; topic.Get("Title") != "Order 1001" || topic.Get("Priority") != "high" || topic.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("ntfy: %v", topic)
	}
	if mail := requests["/email"].Header; mail.Get("X-Postmark-Server-Token") != token || mail.Get("Content-Type") != "application/json" {
		t.Errorf("postmark: %v", mail)
	}
}
