package jobs

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// schedules are the starts of all attempts of the three policies, as the
// contract writes them.
func schedules() map[string][]time.Duration {
	s, m, h := time.Second, time.Minute, time.Hour
	return map[string][]time.Duration{
		PolicyDefault: {0, 5 * s, 30 * s, 150 * s, 750 * s, 4350 * s},
		PolicyQuick:   {0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s, 63 * s, 127 * s, 255 * s, 511 * s, 1023 * s},
		PolicyPatient: {0, m, 6 * m, 36 * m, 156 * m, 12*h + 36*m, 36*h + 36*m},
	}
}

// TestGateD2 lets a delivery fail by each policy until it is dead, on the real
// store: the starts of its attempts are the policy's, to the millisecond.
func TestGateD2(t *testing.T) {
	t.Parallel()
	for name, want := range schedules() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := testkit.NewDestination(t)
			app.Script(testkit.Answer{Status: 500})
			f := newFixture(t)
			f.use(config.Destination{URL: app.URL, Retry: name})
			f.add(1, "app")
			f.runUntil(startTime().Add(90 * time.Hour))
			if got := f.offsets(1); !slices.Equal(got, want) {
				t.Errorf("attempts at %v, want %v", got, want)
			}
			if d := f.delivery(1); d.State != event.DeliveryDead || d.Attempts != len(want) || d.Status != 500 {
				t.Errorf("%+v", d)
			}
			if n := app.Count(); n != len(want) {
				t.Errorf("%d requests for %d attempts", n, len(want))
			}
			if got := f.incidents(event.CauseDeadDelivery); len(got) != 1 || got[0].Count != 1 || got[0].Subject != "app" {
				t.Errorf("incidents %+v", got)
			}
		})
	}
}

// TestGateD2Jitter never shortens a slot and adds at most a tenth.
func TestGateD2Jitter(t *testing.T) {
	t.Parallel()
	end := startTime().Add(1)
	for name, policy := range BuiltInPolicies() {
		if policy.Attempts != len(schedules()[name]) {
			t.Errorf("%s: %d attempts", name, policy.Attempts)
		}
		for attempt, slot := range policy.Delays {
			for _, jitter := range []float64{-1, 0, 1e-12, 0.5, 0.999999, 1, 7} {
				got := policy.Next(attempt+1, end, 0, jitter).Sub(end)
				if got < slot || got > slot+slot/10+time.Millisecond {
					t.Errorf("%s after attempt %d with jitter %v: %s, slot %s", name, attempt+1, jitter, got, slot)
				}
			}
		}
	}
}

// TestGateD2RetryAfter waits for the later of slot and Retry-After, within the
// cap.
func TestGateD2RetryAfter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"":                              5 * time.Second,
		"0":                             5 * time.Second,
		"abc":                           5 * time.Second,
		"3":                             5 * time.Second,
		"120":                           2 * time.Minute,
		"999999999":                     time.Hour,
		"Sat, 07 Mar 2026 22:00:45 GMT": 45 * time.Second,
		"Sat, 07 Mar 2026 21:00:00 GMT": 5 * time.Second,
	} {
		app := testkit.NewDestination(t)
		app.Script(testkit.Answer{Status: 429, Header: map[string]string{"Retry-After": text}}, testkit.Answer{})
		f := newFixture(t)
		f.use(config.Destination{URL: app.URL, MaxRetryAfter: config.Duration(time.Hour)})
		f.add(1, "app")
		f.runUntil(startTime().Add(2 * time.Hour))
		if got := f.offsets(1); !slices.Equal(got, []time.Duration{0, want}) {
			t.Errorf("%q: attempts at %v, want the second at %s", text, got, want)
		}
	}
}

// TestBugJOB08Jitter spreads what failed in one instant.
func TestBugJOB08Jitter(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	policy := BuiltInPolicies()[PolicyDefault]
	at := map[time.Time]int{}
	for range 1000 {
		at[policy.Next(3, startTime(), 0, random.Float64())]++
	}
	if len(at) < 900 {
		t.Errorf("1000 deliveries come back at %d different times", len(at))
	}
}

func TestOwnPolicies(t *testing.T) {
	t.Parallel()
	s := time.Second
	policies, problems := CompilePolicies(map[string]config.Retry{
		"list":  {Delays: []config.Duration{config.Duration(s), config.Duration(3 * s)}, Retry4xx: true},
		"grows": {First: config.Duration(s), Factor: 3, Max: config.Duration(10 * s), Attempts: 5},
		"twice": {First: config.Duration(s), Attempts: 4},
		"once":  {First: config.Duration(s), Attempts: 1},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, want := range map[string][]time.Duration{
		"list": {s, 3 * s}, "grows": {s, 3 * s, 9 * s, 10 * s}, "twice": {s, 2 * s, 4 * s}, "once": {},
	} {
		got := policies[name]
		if !slices.Equal(got.Delays, want) || got.Attempts != len(want)+1 || got.Retry4xx != (name == "list") || got.Name != name {
			t.Errorf("%s: %+v, want %v", name, got, want)
		}
	}
	patient := BuiltInPolicies()[PolicyPatient]
	for asked, want := range map[time.Duration]time.Duration{0: 26*time.Hour + 24*time.Minute, 100 * time.Hour: 110 * time.Hour} {
		if got := patient.Longest(asked); got != want+time.Millisecond || patient.Next(6, startTime(), asked, 1).After(startTime().Add(got)) {
			t.Errorf("longest %s, want %s", got, want)
		}
	}
}

func TestBadPolicies(t *testing.T) {
	t.Parallel()
	s := config.Duration(time.Second)
	for name, c := range map[string]struct {
		retry config.Retry
		path  string
	}{
		"default":  {config.Retry{Delays: []config.Duration{s}}, "retry.default"},
		"empty":    {config.Retry{}, "retry.empty"},
		"both":     {config.Retry{Delays: []config.Duration{s}, First: s}, "retry.both.delays"},
		"zero":     {config.Retry{Delays: []config.Duration{s, 0}}, "retry.zero.delays[1]"},
		"ages":     {config.Retry{Delays: []config.Duration{config.Duration(1000 * time.Hour)}}, "retry.ages.delays[0]"},
		"factor":   {config.Retry{First: s, Factor: 0.5, Attempts: 3}, "retry.factor.factor"},
		"max":      {config.Retry{First: s, Max: s / 2, Attempts: 3}, "retry.max.max"},
		"attempts": {config.Retry{First: s}, "retry.attempts.attempts"},
		"many":     {config.Retry{First: s, Attempts: 100000}, "retry.many.attempts"},
		"first":    {config.Retry{Factor: 2, Attempts: 3}, "retry.first.first"},
	} {
		policies, problems := CompilePolicies(map[string]config.Retry{name: c.retry})
		if len(problems) != 1 || problems[0].Path != c.path {
			t.Errorf("%s: %v, want one at %s", name, problems, c.path)
		}
		if _, there := policies[name]; there && name != PolicyDefault {
			t.Errorf("%s: a bad policy can be used", name)
		}
	}
	_, problems := PolicyOf(BuiltInPolicies(), "fast", "destination.app.retry")
	if len(problems) != 1 || problems[0].Path != "destination.app.retry" || !strings.Contains(problems[0].Message, "fast") {
		t.Errorf("%v", problems)
	}
}
