package receiver_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
	"creel/receiver"
	"creel/source"
)

// repaired is a receiver whose source has the wrong secret until repair is
// called.
func repaired(t *testing.T, wrong, right config.Source, o receiver.Options) (*desk, *testkit.Clock, func()) {
	t.Helper()
	var now atomic.Pointer[source.Source]
	compile := func(cfg config.Source) *source.Source {
		s, problems := source.Compile(cfg, "source[0]", func(string) (string, bool) { return "", false })
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		return s
	}
	now.Store(compile(wrong))
	fixed := compile(right)
	clock := testkit.NewClock(time.Unix(1_700_000_000, 0))
	d := open(t, deskOptions{clock: clock.Now, receiver: o, lookup: func(name string) (receiver.Source, bool) {
		return now.Load(), name == "gen"
	}})
	return d, clock, func() { now.Store(fixed) }
}

func stripeSource(secret string) config.Source {
	return config.Source{Name: "gen", Provider: "stripe", Secrets: []config.Secret{config.NewSecret(secret)}}
}

// A request that was refused because of our secret is taken when that is
// repaired, as of the time at which it came, once.
func TestReadmitAfterTheSecretIsRepaired(t *testing.T) {
	t.Parallel()
	d, clock, repair := repaired(t, stripeSource("not the secret of the sender"), stripeSource(testSecret), receiver.Options{})
	sender := testkit.Sender{URL: d.url("/in/gen"), Secret: testSecret, Sign: testkit.SignStripe}
	request := sender.Request(t, "", []byte(`{"id":"evt_1","type":"x"}`), clock.Now())
	request.Header.Set("X-Kept", "1")
	request.Header.Set("Cookie", "private")
	wantStatus(t, send(t, request), 401)
	wantStatus(t, send(t, sender.Request(t, "", []byte(`{"id":"evt_2","type":"x"}`), clock.Now().Add(-time.Hour))), 401)

	ctx := context.Background()
	again, err := d.Readmit(ctx, 1, d.basket.Accept)
	if err != nil || again.Outcome != receiver.StillRejected || again.Cause != "wrong_signature" || len(d.basket.all()) > 0 {
		t.Fatalf("before the repair: %+v, %v", again, err)
	}
	repair()
	clock.Advance(48 * time.Hour)
	if again, err = d.Readmit(ctx, 1, d.basket.Accept); err != nil || again.Outcome != receiver.ReadmittedNew || len(again.Events) != 1 {
		t.Fatalf("after the repair: %+v, %v", again, err)
	}
	got := d.basket.all()
	if len(got) != 1 || !got[0].At.Equal(clock.Now()) || got[0].Origin != event.FromWebhook || string(got[0].Body) != `{"id":"evt_1","type":"x"}` ||
		!strings.Contains(got[0].Header, "X-Kept: 1\n") || !strings.Contains(got[0].Header, "Stripe-Signature: ") || strings.Contains(got[0].Header, "private") {
		t.Fatalf("stored: %+v", got)
	}
	if again, err = d.Readmit(ctx, 1, d.basket.Accept); err != nil || again.Outcome != receiver.ReadmittedBefore || len(d.basket.all()) != 1 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	if entry, _ := d.RejectedByID(1); len(entry.Accepted) != 1 || entry.Accepted[0].ID != "evt_1" {
		t.Errorf("the entry: %+v", entry)
	}
	if again, err = d.Readmit(ctx, 2, d.basket.Accept); err != nil || again.Outcome != receiver.StillRejected || again.Cause != "too_old" {
		t.Errorf("signed too long before it came: %+v, %v", again, err)
	}
	if _, err = d.Readmit(ctx, 3, d.basket.Accept); !errors.Is(err, event.ErrNotFound) {
		t.Errorf("not there: %v", err)
	}
}

// A token is compared again too, though nobody is shown it, and a duplicate
// is one.
func TestReadmitByAToken(t *testing.T) {
	t.Parallel()
	token := func(secret string) config.Source {
		return config.Source{Name: "gen", Secrets: []config.Secret{config.NewSecret(secret)}, Verify: &config.Scheme{
			Auth: "token", Signature: config.StringList{"header.X-Token"}, ID: config.StringList{"body.id"}}}
	}
	d, _, repair := repaired(t, token("not the secret of the sender"), token(testSecret), receiver.Options{})
	for range 2 {
		wantStatus(t, d.do(t, "POST", "/in/gen", http.Header{"X-Token": {testSecret}}, []byte(`{"id":"1"}`)), 401)
	}
	repair()
	for i, want := range []receiver.ReadmissionOutcome{receiver.ReadmittedNew, receiver.ReadmittedDuplicate} {
		again, err := d.Readmit(context.Background(), int64(i+1), d.basket.Accept)
		if err != nil || again.Outcome != want {
			t.Errorf("%d: %+v, %v", i+1, again, err)
		}
		if strings.Contains(again.Header, testSecret) {
			t.Error("the token is shown")
		}
	}
	for _, receipt := range d.basket.all() {
		if strings.Contains(receipt.Header, testSecret) {
			t.Error("the token is stored")
		}
	}
}

// What the drawer has not whole, and whose source is gone, is not verified;
// where the store fails the entry stays as it is.
func TestReadmitWhatCanNotBe(t *testing.T) {
	t.Parallel()
	d, clock, repair := repaired(t, stripeSource("not the secret of the sender"), stripeSource(testSecret), receiver.Options{DrawerBody: 30})
	sender := testkit.Sender{URL: d.url("/in/gen"), Secret: testSecret, Sign: testkit.SignStripe}
	wantStatus(t, send(t, sender.Request(t, "", []byte(`{"id":"evt_1","type":"a long one"}`), clock.Now())), 401)
	wantStatus(t, send(t, sender.Request(t, "", []byte(`{"id":"evt_2"}`), clock.Now())), 401)
	repair()
	ctx := context.Background()
	if again, err := d.Readmit(ctx, 1, d.basket.Accept); err != nil || again.Outcome != receiver.RejectedCut {
		t.Errorf("cut: %+v, %v", again, err)
	}
	broken := errors.New("the store is broken")
	if _, err := d.Readmit(ctx, 2, func(context.Context, *event.Receipt) (event.Accepted, error) { return event.Accepted{}, broken }); !errors.Is(err, broken) {
		t.Errorf("a store that fails: %v", err)
	}
	if again, err := d.Readmit(ctx, 2, d.basket.Accept); err != nil || again.Outcome != receiver.ReadmittedNew {
		t.Errorf("then: %+v, %v", again, err)
	}
}
