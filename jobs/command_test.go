package jobs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"creel/config"
	"creel/deliver"
	"creel/event"
)

// A program that is gone for eight hours, by an update that went wrong, holds
// its destination like an app that is down: nothing dies, and all run when it
// is back.
func TestAMissingProgramKillsNoDelivery(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	program := filepath.Join(t.TempDir(), "program")
	install := func() {
		t.Helper()
		if err := os.Symlink("/bin/true", program); err != nil {
			t.Fatal(err)
		}
	}
	install()
	d, problems := deliver.NewCommand("app", config.Destination{Command: []string{program}}, "destination.app",
		deliver.Options{Env: func(string) (string, bool) { return "", false }, Clock: f.clock.Now})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	f.routes = []Route{RouteTo(d, BuiltInPolicies()[PolicyDefault])}
	f.dispatcher()
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	const n = 20
	f.add(n, "app")
	back := startTime().Add(8 * time.Hour)
	f.runUntil(back.Add(-time.Millisecond))
	if health := f.health("app"); health.State != event.DestinationDisabled || f.count(event.DeliveryReady) != n {
		t.Fatalf("%+v, %d wait", health, f.count(event.DeliveryReady))
	}
	if got := f.outages("app"); len(got) != 1 {
		t.Errorf("incidents %+v", got)
	}
	install()
	f.runUntil(back.Add(disabledProbe + time.Minute))
	if sent := f.count(event.DeliverySent); sent != n || f.health("app").State != event.DestinationEnabled {
		t.Errorf("%d of %d were run: %+v", sent, n, f.health("app"))
	}
}
