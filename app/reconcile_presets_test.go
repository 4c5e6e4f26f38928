package app

import (
	"context"
	"slices"
	"testing"
	"time"

	"creel/admin"
	"creel/event"
	"creel/source"
)

// TestGateO4EverySender compares with a list as each known sender keeps one:
// pages that end inside of a second, limits of the rate, events that come while
// the list is read, other types, a span that is over. What is missing is found,
// brought in once, and is what its webhook would have been.
func TestGateO4EverySender(t *testing.T) {
	t.Parallel()
	for _, d := range []dialect{paddle(), polar(), workos(), square(), gocardless(), resend()} {
		t.Run(d.provider, func(t *testing.T) {
			t.Parallel()
			s, k := newSenderStage(t, d)
			everySender(t, d, s, k)
		})
	}
}

func everySender(t *testing.T, d dialect, s *stage, k *shelf) {
	now := s.now()
	kind := "payments.confirmed"
	second := burst(450, "burst", now.Add(-48*time.Hour))
	var missing, arrived []kept
	for i := range second {
		if second[i].kind = kind; i%3 == 0 {
			missing = append(missing, second[i])
		} else {
			arrived = append(arrived, second[i])
		}
	}
	old := kept{id: "evt_old", kind: kind, at: now.Add(-27 * 24 * time.Hour)}
	before := kept{id: "evt_before", kind: kind, at: now.Add(-29 * 24 * time.Hour)} // of the time before --since
	other := kept{id: "evt_other", kind: "mandates.created", at: now.Add(-3 * time.Hour)}
	young := kept{id: "evt_young", kind: kind, at: now.Add(-time.Minute)}
	missing = append(missing, old)
	k.grow = func(n int) []kept {
		if len(k.events) == 0 || n > 12 {
			return nil
		}
		return burst(1, time.Duration(n).String(), s.now())
	}
	if empty := s.compare(t, admin.AskReconcile{Since: now.Add(-20 * 24 * time.Hour)}); empty.Listed+empty.Missing > 0 {
		t.Errorf("an empty list has %d events", empty.Listed)
	}
	k.events = append(append([]kept{before, old}, second...), other, young)
	s.deliver(t, d, event.New, arrived...)

	since := old.at // and what is of that moment belongs to it
	first := s.compare(t, admin.AskReconcile{Since: since})
	if first.Missing != len(missing) || first.Listed != len(second)+1 || first.Unreadable != 0 || first.Recovered != 0 {
		t.Errorf("%d listed, %d missing of %d, %d unreadable: %s", first.Listed, first.Missing, len(missing), first.Unreadable, first.Why)
	}
	if gap := s.gap(t); gap.Missing != len(missing) {
		t.Errorf("the gap is %d", gap.Missing)
	}
	if k.limited == 0 || k.tooSoon > 0 {
		t.Errorf("it was asked to wait %d times, and not left alone %d times", k.limited, k.tooSoon)
	}

	second2 := s.compare(t, admin.AskReconcile{Since: since, Import: true})
	if second2.Missing != len(missing) || second2.Recovered != len(missing) || second2.Failed != 0 {
		t.Errorf("%d missing, %d recovered, %d failed: %+v", second2.Missing, second2.Recovered, second2.Failed, failures(second2))
	}
	inbox := s.inboxOf(t, "sender")
	if len(inbox) != len(second)+1 {
		t.Errorf("%d events are in the inbox, want %d", len(inbox), len(second)+1)
	}
	for _, one := range missing {
		if e := inbox[one.id]; e.Origin != event.FromReconcile || e.Type != kind || e.Object == "" {
			t.Errorf("%s came as %q, type %q, object %q", one.id, e.Origin, e.Type, e.Object)
		}
	}
	// A webhook that comes after all says the same.
	s.deliver(t, d, event.Duplicate, missing...)
	if third := s.compare(t, admin.AskReconcile{Since: since}); third.Missing != 0 {
		t.Errorf("a third time %d are missing", third.Missing)
	}
	s.spanThatIsOver(t, d)
	s.askedAgain(t, d, k)
}

// spanThatIsOver: what the sender keeps no longer is named.
func (s *stage) spanThatIsOver(t *testing.T, d dialect) {
	t.Helper()
	if d.reach == 0 {
		return // it is not known how far back the list goes
	}
	since := s.now().Add(-d.reach - 10*24*time.Hour)
	done := s.compare(t, admin.AskReconcile{Since: since})
	want := source.Span{From: since, Until: since.Add(10 * 24 * time.Hour)}
	if len(done.Lost) != 1 || !done.Lost[0].From.Equal(want.From) || done.Lost[0].Until.Sub(want.Until).Abs() > time.Minute {
		t.Errorf("can not be recovered: %v, want %v", done.Lost, want)
	}
}

// askedAgain: a sender that can be asked delivers again itself.
func (s *stage) askedAgain(t *testing.T, d dialect, k *shelf) {
	t.Helper()
	if !d.again {
		if s.snapshot.Load().Sources["sender"].Lister().Redelivers() {
			t.Error("it is said to deliver again")
		}
		return
	}
	k.mu.Lock()
	k.events = append(k.events, kept{id: "evt_again", kind: "payments.confirmed", at: s.now().Add(-time.Hour)})
	k.mu.Unlock()
	done := s.compare(t, admin.AskReconcile{Since: s.now().Add(-2 * time.Hour), Redeliver: true})
	if done.Asked != done.Missing || !slices.Contains(k.again, "evt_again") {
		t.Errorf("%d missing, %d asked for, %v: %v", done.Missing, done.Asked, k.again, failures(done))
	}
}

func (s *stage) compare(t *testing.T, ask admin.AskReconcile) admin.Reconciled {
	t.Helper()
	ask.Source, ask.Actor = "sender", "test"
	done, err := s.Reconcile(context.Background(), ask)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func failures(done admin.Reconciled) (list []string) {
	for _, one := range done.List {
		if one.Error != "" && len(list) < 3 {
			list = append(list, one.ID+": "+one.Error)
		}
	}
	return list
}
