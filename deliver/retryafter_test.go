package deliver

import (
	"net/http"
	"testing"
	"time"

	"creel/config"
	"creel/internal/testkit"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 500e6, time.UTC)
	limit := 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"":                               0,
		"0":                              0,
		"120":                            2 * time.Minute,
		" 120 ":                          2 * time.Minute,
		"86400":                          24 * time.Hour,
		"86401":                          limit,
		"99999999999999999999999":        limit,
		"-5":                             0,
		"1.5":                            0,
		"abc":                            0,
		"120s":                           0,
		"Sun, 01 Mar 2026 12:00:10 GMT":  9500 * time.Millisecond,
		"Sun, 01 Mar 2026 11:00:00 GMT":  0,
		"Sun, 01 Mar 2099 11:00:00 GMT":  limit,
		"Sunday, 01-Mar-26 12:01:00 GMT": 59500 * time.Millisecond,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now, limit); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestBugOUT03 gets the header through a real answer, with every status that
// can carry it, and not where the delivery arrived.
func TestBugOUT03(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL, MaxRetryAfter: config.Duration(time.Hour)})
	for _, c := range []struct {
		status int
		text   string
		want   time.Duration
	}{
		{429, "120", 2 * time.Minute}, {503, "120", 2 * time.Minute}, {429, "0", 0},
		{429, "86400", time.Hour}, {503, "abc", 0}, {200, "120", 0},
	} {
		app.Script(testkit.Answer{Status: c.status, Header: map[string]string{"Retry-After": c.text}})
		if got := d.Attempt(t.Context(), shipment(), time.Now()).RetryAfter; got != c.want {
			t.Errorf("%d with %q: %s, want %s", c.status, c.text, got, c.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"120", "abc", "-1", "99999999999999999999", "Sun, 01 Mar 2026 12:00:10 GMT"} {
		f.Add(seed)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		got := retryAfter(http.Header{"Retry-After": {text}}, now, time.Hour)
		if got < 0 || got > time.Hour {
			t.Fatalf("%q: %s", text, got)
		}
	})
}
