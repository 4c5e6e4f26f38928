package deliver

import (
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// TestSuccessStatuses takes the destination's own word on what counts as sent,
// instead of 2xx and 409: 410 among them disables nothing.
func TestSuccessStatuses(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	for _, c := range []struct {
		success []int
		want    map[int]event.Outcome
	}{
		{nil, map[int]event.Outcome{200: event.OK, 202: event.OK, 409: event.OK, 302: event.Transient, 410: event.Permanent}},
		{[]int{202, 302, 410, 503}, map[int]event.Outcome{202: event.OK, 302: event.OK, 410: event.OK, 503: event.OK,
			200: event.Transient, 204: event.Transient, 409: event.Permanent, 404: event.Permanent, 500: event.Transient, 301: event.Transient}},
	} {
		d := compiled(t, config.Destination{URL: app.URL, Success: c.success})
		for status, want := range c.want {
			app.Script(testkit.Answer{Status: status})
			got := d.Attempt(t.Context(), shipment(), time.Now())
			if got.Attempt.Outcome != want || (got.Attempt.Error == "") != (want == event.OK) {
				t.Errorf("%v: %d is %s (%s), want %s", c.success, status, got.Attempt.Outcome, got.Attempt.Error, want)
			}
			if got.Gone != (status == 410 && want != event.OK) {
				t.Errorf("%v: %d: gone %t", c.success, status, got.Gone)
			}
			if status < 300 && want != event.OK && !strings.Contains(got.Attempt.Error, "not among the destination's success statuses") {
				t.Errorf("%v: %d says %q", c.success, status, got.Attempt.Error)
			}
		}
	}
	if got := Classify(Reply{Status: 550, SMTP: true, Success: []int{550}}); got != event.Permanent {
		t.Errorf("a mail server's 550 is %s", got)
	}
}
