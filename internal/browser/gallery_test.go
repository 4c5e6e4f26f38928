//go:build browser

package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"creel/internal/testkit"
)

// galleryConfiguration has something for every view: %s is the app.
const galleryConfiguration = `
listen   = "127.0.0.1:0"
database = "creel.db"
[admin]
listen     = "127.0.0.1:0"
password   = "env:PAGE_PASSWORD"
[log]
format = "json"
[alerts]
to   = ["destination:chat"]
wait = "0s"
[[source]]
name     = "stripe"
provider = "stripe"
secrets  = ["env:STRIPE_SECRET"]
index    = ["body.data.object.customer"]
[[source]]
name    = "shop"
secrets = ["env:SHOP_SECRET"]
index   = ["body.customer"]
  [source.verify]
  auth      = "hmac-sha256"
  signature = "header.x-signature"
  encoding  = "hex"
  signed    = "{body}"
  id        = "body.id"
  type      = "body.type"
  object    = "body.order?"
  version   = "body.version?"
[[rule]]
name  = "credits for a paid invoice"
match = { source = "stripe", types = ["invoice.paid"] }
key   = "{body.data.object.id}/paid"
  [rule.record]
  kind   = "payment"
  fields = { invoice = "{body.data.object.number}", customer = "{body.data.object.customer}" }
  [rule.grant]
  to     = "{body.data.object.customer}"
  unit   = "credits"
  amount = "body.data.object.amount_paid / 10"
  [rule.forward]
  to = "app"
[[rule]]
name  = "credits taken back"
match = { source = "stripe", types = ["charge.refunded"] }
key   = "{body.data.object.id}/refunded"
  [rule.grant]
  reverse = "{body.data.object.invoice}/paid"
[[rule]]
name     = "subscriptions"
match    = { source = "stripe", types = ["customer.subscription.*"] }
order_by = "{object}"
  [rule.state]
  object  = "{object}"
  to      = "{body.data.object.status}"
  version = "{version}"
    [rule.state.fields]
    plan = "{body.data.object.plan}"
  [rule.forward]
  to = "app"
[[rule]]
name  = "orders"
match = { source = "shop", types = ["order.*"] }
key   = "{body.order}/{type}"
order_by = "{body.order}"
  [rule.record]
  kind   = "order"
  fields = { number = "{body.order}", customer = "{body.customer}", total = "{body.total}" }
  [rule.forward]
  to = "app"
[[rule]]
name  = "labels"
match = { source = "shop", types = ["parcel.*"] }
  [rule.forward]
  to = "printer"
[[rule]]
name  = "customers"
match = { source = "shop", types = ["customer.*"] }
  [rule.forward]
  to = "crm"
[destination.app]
url    = "%[1]s/webhooks"
secret = "env:APP_SECRET"
retry  = "short"
[destination.chat]
url    = "%[1]s/chat"
secret = "env:APP_SECRET"
[destination.crm]
url    = "http://127.0.0.1:1/hooks"
secret = "env:APP_SECRET"
[destination.printer]
url      = "%[1]s/labels"
secret   = "env:APP_SECRET"
on_doubt = "review"
[retry.short]
first    = "1s"
attempts = 2
`

// gallery is a server that has had a day: something is dead, held, in doubt,
// parked and rejected, most went well, and somebody has looked into it.
func gallery(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, app: testkit.NewDestination(t)}
	s.app.Answer(answerOfTheApp)
	s.Process = testkit.NewProcess(t, fmt.Sprintf(galleryConfiguration, s.app.URL), "SHOP_SECRET="+secret, "STRIPE_SECRET="+stripeSecret,
		"PAGE_PASSWORD="+password, "APP_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	s.Start(t)
	s.sender = testkit.Sender{URL: s.URL("/in/shop"), Secret: secret, Sign: testkit.SignPlain}
	s.base = s.AdminURL("")
	stripe := testkit.Sender{URL: s.URL("/in/stripe"), Secret: stripeSecret, Sign: testkit.SignStripe}
	for _, body := range stripeEvents() {
		if status, answer := stripe.Send(t, "", []byte(body)); status != http.StatusOK {
			t.Fatalf("answered %d %q to %s", status, answer, body)
		}
	}
	s.send(shopEvents()...)
	s.send(shopEvents()[2], shopEvents()[3], shopEvents()[2])                                                                  // again
	s.send(strings.Replace(shopEvents()[4], `"total":"`, `"total":"1`, 1))                                                     // and otherwise
	stripe.Secret = "whsec_of-the-test-mode-endpoint"                                                                          // of another endpoint
	stripe.Send(t, "", []byte(stripeEvents()[0]))                                                                              //
	testkit.Sender{URL: s.URL("/in/shop"), Secret: "guess", Sign: testkit.SignPlain}.Send(t, "", []byte(`{"id":"ord_evt_9"}`)) //
	s.await("dead", 8)
	s.await("in_doubt", 1)
	s.await("ready", 3)
	for _, command := range [][]string{
		{"replay", "shop//ord_evt_14", "--reason", "price added, ticket 412"},
		{"pause", "chat", "--reason", "too loud during the move"},
		{"resume", "chat"},
		{"token", "create", "deploy robot", "--scope", "operate"},
		{"token", "create", "status board", "--scope", "read"},
		{"token", "revoke", "2"},
	} {
		if _, _, stderr := s.Run(t, command...); len(stderr) > 0 {
			t.Logf("creel %s: %s", strings.Join(command, " "), stderr)
		}
	}
	s.await("dead", 8)
	testkit.Poll(t, 2*soon, "the signals to be measured again", func() bool {
		_, stdout, _ := s.Run(t, "stats", "--json")
		return strings.Contains(string(stdout), `"firing":true`)
	})
	return s
}

const stripeSecret = "whsec_of-the-live-endpoint"

// answerOfTheApp takes most, knows no price that is gone, and loses what it
// says about labels.
func answerOfTheApp(got testkit.Received) testkit.Answer {
	body := string(got.Body)
	switch {
	case strings.HasPrefix(got.URL, "/labels"):
		return testkit.Answer{Fault: testkit.Close}
	case strings.Contains(body, "price_gone"):
		return testkit.Answer{Status: http.StatusUnprocessableEntity, Body: `{"error":"unknown price","price":"price_gone"}`}
	case strings.Contains(body, "order.cancelled"):
		return testkit.Answer{Status: http.StatusNotFound, Body: "no route matches [POST] /webhooks/cancelled"}
	}
	return testkit.Answer{Status: http.StatusNoContent}
}

func stripeEvents() []string {
	var list []string
	event := func(n int, kind, object string) {
		list = append(list, fmt.Sprintf(`{"id":"evt_1QxTmL2eZvKYlo2C%04d","object":"event","api_version":"2026-10-28","created":%d,"type":%q,"livemode":true,"data":{"object":%s}}`,
			n, 1796000000+n, kind, object))
	}
	for i := range 8 {
		event(i, "invoice.paid", fmt.Sprintf(`{"id":"in_1QxT%03d","object":"invoice","number":"INV-%04d","customer":"cus_R8a%d","amount_paid":%d,"currency":"eur"}`,
			i, 1040+i, i%3, 1900+i*500))
	}
	event(20, "charge.refunded", `{"id":"ch_3QxT002","object":"charge","invoice":"in_1QxT002","customer":"cus_R8a2","amount_refunded":2900}`)
	for i, status := range []string{"trialing", "active", "past_due", "active"} {
		event(30+i, "customer.subscription.updated", fmt.Sprintf(`{"id":"sub_1QxTpro","object":"subscription","status":%q,"plan":"pro-%d","customer":"cus_R8a1"}`, status, i))
	}
	event(40, "invoice.paid", `{"id":"in_1QxT900","object":"invoice","number":"INV-1090","amount_paid":4900,"currency":"eur"}`) // no customer
	return list
}

func shopEvents() []string {
	var list []string
	order := func(n int, kind, order, price string) {
		list = append(list, fmt.Sprintf(`{"id":"ord_evt_%d","type":%q,"order":%q,"version":%d,"customer":"cus_R8a%d","total":"%d.00","lines":[{"price":%q,"quantity":%d,"serial":1152921506151679042}]}`,
			n, kind, order, n, n%3, 20+n, price, n%4+1))
	}
	for i := range 10 {
		order(i, "order.paid", fmt.Sprintf("A-%d", 2040+i), "price_basic")
	}
	for i := range 5 {
		order(10+i, "order.paid", fmt.Sprintf("A-%d", 2050+i), "price_gone")
	}
	for i := range 3 {
		order(20+i, "order.cancelled", fmt.Sprintf("A-%d", 2060+i), "price_basic")
	}
	order(25, "order.shipped", "A-2060", "price_basic") // waits behind a dead one
	list = append(list, `{"id":"par_evt_1","type":"parcel.packed","order":"A-2041","label":"DHL 00340434161094027318"}`)
	for i := range 3 {
		list = append(list, fmt.Sprintf(`{"id":"cus_evt_%d","type":"customer.updated","customer":"cus_R8a%d","email":"c%d@example.com"}`, i, i, i))
	}
	return list
}
