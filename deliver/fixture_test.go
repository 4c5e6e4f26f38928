package deliver

import (
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// testSecret is 32 bytes as Standard Webhooks writes them.
const testSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// noEnv is an environment without variables.
func noEnv(string) (string, bool) { return "", false }

// compiled makes a destination of a configuration that has no faults.
func compiled(t testing.TB, cfg config.Destination, change ...func(*Options)) *Destination {
	t.Helper()
	if cfg.Secret.IsZero() {
		cfg.Secret = config.NewSecret(testSecret)
	}
	opt := Options{Env: noEnv, Clock: time.Now, Version: "test"}
	for _, f := range change {
		f(&opt)
	}
	d, problems := New("app", cfg, "destination.app", opt)
	if faults := problems.Faults(); len(faults) > 0 {
		t.Fatalf("compile: %v", faults)
	}
	t.Cleanup(d.Close)
	return d
}

// shipment is a delivery on its first attempt.
func shipment() event.Shipment {
	return event.Shipment{
		Delivery: event.Delivery{ID: 7, EventSeq: 1, Key: "stripe//evt_1/all", Destination: "app",
			Event: event.Key{Source: "stripe", ID: "evt_1"}, Run: 1, Attempts: 1, Tries: 1},
		Claim:   "boot.1",
		Type:    "invoice.paid",
		Payload: event.Payload{Body: []byte(`{"id":"evt_1"}`), Header: "Content-Type: application/json\n"},
	}
}
