package app

import (
	"testing"
	"time"

	"creel/event"
	"creel/jobs"
	"creel/receiver"
	"creel/source"
)

// What was refused for how it was sent is no failed signature: the alert would
// say that a secret is wrong.
func TestWhatIsRefusedUnverifiedIsNoFailedSignature(t *testing.T) {
	t.Parallel()
	for _, cause := range source.Causes() {
		a := &App{hub: newHub(), tally: jobs.NewTally(jobs.TallyOptions{Clock: time.Now})}
		a.tally.Configure([]string{"shop"}, nil)
		a.noteRejected(receiver.Rejected{Source: "shop", Cause: string(cause)})
		failed, refused := a.tally.Hour(event.TallyRejects, "shop", time.Now()), a.tally.Hour(event.TallyUnverified, "shop", time.Now())
		unverified := cause == source.TooLarge || cause == source.UnsupportedEncoding
		if unverified != (refused == 1) || unverified != (failed == 0) {
			t.Errorf("%s: %d failed signatures and %d refused", cause, failed, refused)
		}
	}
}
