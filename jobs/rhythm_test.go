package jobs

import (
	"testing"
	"time"

	"creel/event"
)

// after lets a rhythm hear one receipt after each pause.
func (r *rhythm) after(pauses ...time.Duration) time.Time {
	at := r.Last
	if at.IsZero() {
		at = startTime()
		r.heard(at, 1)
	}
	for _, pause := range pauses {
		at = at.Add(pause)
		r.heard(at, 1)
	}
	return at
}

func every(pause time.Duration, n int) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = pause
	}
	return out
}

// near tells whether a length is what it should be, to the step of the scale.
func near(got, want time.Duration) bool { return got >= want && got <= want+want/25 }

func TestUsualPause(t *testing.T) {
	t.Parallel()
	day := append(every(2*time.Minute, 30*14), 10*time.Hour) // busy hours, a quiet night
	var fortnight []time.Duration
	for range 13 {
		fortnight = append(fortnight, day...)
	}
	for name, c := range map[string]struct {
		pauses []time.Duration
		want   time.Duration // 0 is not known
	}{
		"nothing":               {nil, 0},
		"too few":               {every(time.Hour, 18), 0},
		"every three hours":     {every(3*time.Hour, 30), 3 * time.Hour},
		"never under an hour":   {every(20*time.Minute, 200), time.Hour},
		"one in a hundred":      {append(every(2*time.Hour, 99), 4*time.Hour), 2 * time.Hour},
		"two in a hundred":      {append(every(2*time.Hour, 98), 4*time.Hour, 4*time.Hour), 4 * time.Hour},
		"quiet nights":          {fortnight, 10 * time.Hour},
		"an outage is no habit": {append(every(3*time.Hour, 30), 72*time.Hour), 6 * time.Hour},
		"a burst is no habit":   {append(every(6*time.Hour, 30), every(time.Minute, 5000)...), 6 * time.Hour},
		"a slower sender":       {append(every(3*time.Hour, 20), every(5*time.Hour, 10)...), 5 * time.Hour},
		"long ago":              {append(every(3*time.Hour, 30), 15*24*time.Hour), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRhythm(event.Rhythm{Source: "shop"})
			at := r.after(c.pauses...)
			got, known := r.usual(at)
			if known != (c.want > 0) || known && !near(got, c.want) {
				t.Errorf("%v %v, want %v", got, known, c.want)
			}
		})
	}
}

// Days are those of UTC: where clocks are changed, none is short or doubled.
func TestBugJOB13RhythmsKnowNoDaylightSaving(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []time.Time{
		time.Date(2026, 3, 8, 2, 0, 0, 0, zone), time.Date(2026, 11, 1, 1, 0, 0, 0, zone),
	} {
		local, plain := newRhythm(event.Rhythm{}), newRhythm(event.Rhythm{})
		for at := change.Add(-10 * 24 * time.Hour); at.Before(change.Add(3 * 24 * time.Hour)); at = at.Add(3 * time.Hour) {
			local.heard(at, 1)
			plain.heard(at.UTC(), 1)
		}
		now := change.Add(3 * 24 * time.Hour)
		first, _ := local.usual(now)
		second, _ := plain.usual(now.UTC())
		if first != second || !near(first, 3*time.Hour) || len(local.days) != len(plain.days) || len(local.days) != 14 {
			t.Errorf("%v: %v and %v, %d and %d days", change, first, second, len(local.days), len(plain.days))
		}
		for day, counts := range local.days {
			n := int64(0)
			for _, m := range counts {
				n += m
			}
			if begun := dayOf(change.Add(-10 * 24 * time.Hour)); n != 8 && day > begun && day < dayOf(now) {
				t.Errorf("%d receipts on day %d", n, day)
			}
		}
	}
}

// What was learned outlives a restart, and a clock that is set back.
func TestRhythmsAreStored(t *testing.T) {
	t.Parallel()
	f := newTallies(t)
	r := newRhythm(event.Rhythm{Source: "shop", Since: startTime()})
	at := r.after(every(3*time.Hour, 30)...)
	first, last := daysAt(at)
	save := func() {
		t.Helper()
		if err := f.saved.SaveRhythms(t.Context(), []event.Rhythm{r.unsaved()}, first, last); err != nil {
			t.Fatal(err)
		}
		r.saved()
	}
	save()
	at = r.after(every(3*time.Hour, 2)...)
	save()
	stored, err := f.saved.Rhythms(t.Context())
	if err != nil || len(stored) != 1 {
		t.Fatalf("%v %v", stored, err)
	}
	again := newRhythm(stored[0])
	want, _ := r.usual(at)
	if got, known := again.usual(at); !known || got != want || !again.Last.Equal(at) || !again.Since.Equal(startTime()) {
		t.Errorf("%v %v %v", got, again.Last, again.Since)
	}
	again.heard(at.Add(-24*time.Hour), 1)
	again.heard(at.Add(-23*time.Hour), 1)
	if got, _ := again.usual(at); got != want {
		t.Errorf("after the clock was set back %v", got)
	}
}
