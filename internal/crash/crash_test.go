package crash

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"creel/internal/testkit"
)

var (
	kills = flag.Int("kills", 12, "how often the server is killed under load")
	stops = flag.Int("stops", 3, "how often the server is stopped under load")
	bulk  = flag.Int("bulk", 3000, "how many events TestGateO13 replays; under 15000 with a pace that leaves time to kill")
	// The first probe comes after 5 s, the next one 10 s later.
	outage = flag.Duration("outage", 7*time.Second, "how long the destination of TestGateD4ForReal is down")
)

// TestMain reads the flags of the harness and removes the binary it built.
func TestMain(m *testing.M) {
	flag.Parse()
	testkit.Main(m)
}

const (
	// inFlight is the limit of the destination under test.
	inFlight = 8
	// drainLimit is how long everything that was acknowledged may take to
	// arrive after the last start.
	drainLimit = 30 * time.Second
)

// configuration is one signed source that forwards everything to one
// destination. More is added to the destination's table.
func configuration(destination, more string) string {
	return fmt.Sprintf(`
listen   = "127.0.0.1:0"
database = "creel.db"

[admin]
listen   = "127.0.0.1:0"
password = "env:ADMIN_PASSWORD"

[log]
format = "json"

[[source]]
name    = "load"
secrets = ["env:LOAD_SECRET"]
forward = "app"
%s
[destination.app]
url           = %q
secret        = "env:APP_SECRET"
max_in_flight = %d
%s
`, testkit.PlainVerify, destination, inFlight, more)
}

// serve returns the process for a configuration, with a canary as its secret.
func serve(t *testing.T, destination, more string) (*testkit.Process, *testkit.Canary) {
	t.Helper()
	canary := testkit.NewCanary(t)
	p := testkit.NewProcess(t, configuration(destination, more),
		"LOAD_SECRET="+canary.Secret,
		"APP_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		"ADMIN_PASSWORD=a long password for the test",
	)
	canary.Watch("the standard output", p.Stdout)
	canary.Watch("the log", p.Stderr)
	return p, canary
}
