package examples_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"creel/event"
	"creel/internal/testkit"
)

const (
	gatewaySecret  = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	merchantSecret = "whsec_plJ3nmyCDGBKInavdOK15jsl4Uv1mPvD"
	appSecret      = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	shopSecret     = "a-secret-that-the-shop-knows"
)

func newDispatcher(t *testing.T, app, merchant string, replace ...string) *example {
	return newExample(t, "dispatcher", append(replace, "http://127.0.0.1:3000/webhooks", app, "http://127.0.0.1:3001/webhooks", merchant),
		"GATEWAY_SECRET="+gatewaySecret, "APP_WEBHOOK_SECRET="+appSecret, "SHOP_SECRET="+shopSecret, "MERCHANT_SECRET="+merchantSecret)
}

// peer is a dispatcher that keeps to the contract, on a clock of its own: 2xx
// and 409 are success, anything else is tried again after min(1 s × 2^n,
// 1024 s), ten times at most.
type peer struct {
	t      *testing.T
	url    string
	secret string
	before func(attempt int)
}

// sent is what a dispatcher knows of a message in the end.
type sent struct {
	delivered bool
	statuses  []int // 0 is no answer
	waited    time.Duration
}

// deliver sends a message, signed once at a time, until it is delivered or
// given up.
func (p peer) deliver(id string, signed time.Time) (got sent) {
	p.t.Helper()
	body := []byte(`{"type":"payment.completed","data":{"id":"` + id + `"}}`)
	// A connection for each request: nothing is repeated unseen.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	sender := testkit.Sender{URL: p.url, Secret: p.secret, Sign: testkit.SignStandard}
	for retry := 0; ; retry++ {
		if p.before != nil {
			p.before(retry + 1)
		}
		status := 0
		if response, err := client.Do(sender.Request(p.t, id, body, signed)); err == nil {
			_ = response.Body.Close()
			status = response.StatusCode
		}
		got.statuses = append(got.statuses, status)
		got.delivered = status >= 200 && status < 300 || status == http.StatusConflict
		if got.delivered || retry == 10 {
			return got
		}
		got.waited += min(time.Second<<retry, 1024*time.Second)
	}
}

// TestGateR10ExampleReceives lets a dispatcher call Creel: as it should be,
// after a lost answer, while Creel is down, late, and with a wrong secret.
func TestGateR10ExampleReceives(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	e := newDispatcher(t, app.URL, "http://127.0.0.1:1/")
	way := newFront(t)
	way.lead(t, e.URL(""))
	gateway := peer{t: t, url: way.URL + "/in/gateway", secret: gatewaySecret}
	expect := func(what string, got sent, waited time.Duration, statuses ...int) {
		t.Helper()
		last := statuses[len(statuses)-1]
		if !slices.Equal(got.statuses, statuses) || got.delivered != (last == 200 || last == 409) || got.waited != waited {
			t.Errorf("%s: %+v, want %v after %v", what, got, statuses, waited)
		}
	}
	now := time.Now()
	expect("a message", gateway.deliver("m1", now), 0, 200)
	expect("the same by mistake", gateway.deliver("m1", now), 0, 409)
	way.loseNext(1)
	expect("done, and not answered", gateway.deliver("m2", now), time.Second, 0, 409)
	expect("the last retry", gateway.deliver("m3", now.Add(-18*time.Minute)), 0, 200)

	e.Kill()
	way.lead(t, "http://127.0.0.1:1/")
	gateway.before = func(attempt int) {
		if attempt == 4 {
			e.Start(t)
			way.lead(t, e.URL(""))
		}
	}
	expect("Creel is down", gateway.deliver("m4", now), 7*time.Second, 0, 0, 0, 200)
	gateway.before, gateway.secret = nil, merchantSecret
	refused := slices.Repeat([]int{401}, 11)
	expect("a wrong secret", gateway.deliver("m5", now), 1023*time.Second, refused...)
	gateway.secret = gatewaySecret
	expect("long ago", gateway.deliver("m6", now.Add(-time.Hour)), 1023*time.Second, refused...)

	e.await(map[string]event.State{"m1": event.Done, "m2": event.Done, "m3": event.Done, "m4": event.Done})
	testkit.Poll(t, soon, "four messages at the app", func() bool { return len(app.Counts()) == 4 })
	if all := e.list("events"); len(all) != 4 || all["m1"].Duplicates != 1 || all["m2"].Duplicates != 1 || all["m4"].Duplicates != 0 {
		t.Errorf("the events are %+v", all)
	}
	e.stop()
}

// brief is the policy quick, a thousand times as fast.
const brief = `[retry.brief]
first     = "1ms"
factor    = 2
max       = "1024ms"
attempts  = 11
retry_4xx = true

[destination.merchant]`

// TestGateR10ExampleSends lets Creel be the dispatcher of a merchant that
// answers well at last, has it already, or never does.
func TestGateR10ExampleSends(t *testing.T) {
	t.Parallel()
	merchant := testkit.NewDestination(t)
	// By the payment, what its attempts are answered; the last goes on.
	answers := map[string][]testkit.Answer{
		"late":    {{Status: 500}, {Status: 404}, {Status: 302, Header: map[string]string{"Location": "/elsewhere"}}, {Fault: testkit.Close}, {Status: 204}},
		"known":   {{Status: 409}},
		"refused": {{Status: 400, Body: "no such payment"}},
	}
	merchant.Answer(func(r testkit.Received) testkit.Answer {
		script := answers[paymentOf(r)]
		attempt, err := strconv.Atoi(r.Header.Get("Creel-Attempt"))
		if err != nil || len(script) == 0 {
			return testkit.Answer{Status: 418}
		}
		return script[min(attempt, len(script))-1]
	})
	e := newDispatcher(t, "http://127.0.0.1:1/", merchant.URL, `retry           = "quick"`, `retry = "brief"`, "[destination.merchant]", brief)
	e.sender = testkit.Sender{URL: e.URL("/in/shop"), Secret: shopSecret, Sign: testkit.SignPlain}
	for payment := range answers {
		e.send(fmt.Sprintf(`{"id":"evt_%s","type":"payment.completed","data":{"payment":{"id":%q}}}`, payment, payment))
	}
	e.send(`{"id":"evt_other","type":"parcel.sent","data":{}}`)
	e.awaitDeliveries("shop//", map[string]delivered{"evt_late": {"sent", 5, 204}, "evt_known": {"sent", 1, 409}, "evt_refused": {"dead", 11, 400}})
	seen := map[string][]testkit.Received{}
	for _, r := range merchant.Requests() {
		seen[paymentOf(r)] = append(seen[paymentOf(r)], r)
		genuine(t, r, merchantSecret)
	}
	refused := seen["refused"]
	for i, r := range refused {
		if r.ID() != refused[0].ID() || len(r.ID()) > 36 {
			t.Errorf("attempt %d came under %q, the first under %q", i+1, r.ID(), refused[0].ID())
		}
		if i == 0 {
			continue
		}
		if slot := time.Millisecond << (i - 1); r.At.Sub(refused[i-1].At) < slot {
			t.Errorf("attempt %d came after %v, its slot is %v", i+1, r.At.Sub(refused[i-1].At), slot)
		}
	}
	if len(refused) != 11 || len(seen["late"]) != 5 || len(seen["known"]) != 1 || len(seen) != 3 {
		t.Errorf("%d, %d and %d requests about %d payments", len(refused), len(seen["late"]), len(seen["known"]), len(seen))
	}
	if code, _, stderr := e.Run(t, "replay", "--state", "dead", "--source", "shop", "--reason", "the merchant knows it now"); code != 0 {
		t.Errorf("replay: exit %d, %s", code, stderr)
	}
	again := merchant.Wait(t, 18, soon)[17]
	if again.ID() != refused[0].ID() || again.Header.Get("Creel-Attempt") != "1" {
		t.Errorf("the replay came under %q as attempt %s", again.ID(), again.Header.Get("Creel-Attempt"))
	}
	e.stop()
}

func paymentOf(r testkit.Received) string {
	var body struct {
		Data struct{ Payment struct{ ID string } }
	}
	_ = json.Unmarshal(r.Body, &body)
	return body.Data.Payment.ID
}

// genuine checks the signature of a request as its receiver would.
func genuine(t *testing.T, r testkit.Received, secret string) {
	t.Helper()
	seconds, err := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		t.Errorf("signed at %q", r.Header.Get("webhook-timestamp"))
	}
	want := http.Header{}
	testkit.SignStandard(want, secret, r.ID(), r.Body, time.Unix(seconds, 0))
	if got := r.Header.Get("webhook-signature"); got != want.Get("webhook-signature") {
		t.Errorf("the signature is %q, want %q", got, want.Get("webhook-signature"))
	}
}

// delivered is how a delivery ended, as creel deliveries --json tells it.
type delivered struct {
	State    string
	Attempts int
	Status   int
}

// deliveries lists the deliveries by the key of their event, alerts left out.
func (e *example) deliveries(args ...string) map[string]delivered {
	e.t.Helper()
	_, stdout, _ := e.Run(e.t, append([]string{"deliveries", "--json"}, args...)...)
	all := map[string]delivered{}
	for line := range strings.Lines(string(stdout)) {
		var one struct {
			delivered
			Event string
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			e.t.Fatalf("%v: %s", err, line)
		}
		if one.Event != "" {
			all[one.Event] = one.delivered
		}
	}
	return all
}

// awaitDeliveries waits until the deliveries of the events, whose keys begin
// with prefix, are as told, and there are no others.
func (e *example) awaitDeliveries(prefix string, want map[string]delivered) {
	e.t.Helper()
	var got map[string]delivered
	ok := testkit.Await(soon, func() bool {
		got = e.deliveries()
		for id, one := range want {
			if got[prefix+id] != one {
				return false
			}
		}
		return len(got) == len(want)
	})
	if !ok {
		e.t.Fatalf("the deliveries are %+v, want %+v", got, want)
	}
}
