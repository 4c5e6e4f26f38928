package jobs

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"creel/config"
	"creel/deliver"
	"creel/event"
	"creel/internal/testkit"
)

// A boot that dies between a file and its mark finds the file in its place: the
// delivery is sent, nobody is asked, and the file is as it was.
func TestAFileThatIsThereIsNotInDoubt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	folder := t.TempDir()
	d, problems := deliver.NewFolder("app", config.Destination{Folder: folder}, "destination.app",
		deliver.Options{Env: func(string) (string, bool) { return "", false }, Clock: f.clock.Now})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	f.routes = []Route{RouteTo(d, BuiltInPolicies()[PolicyDefault])}
	f.dispatcher()
	f.apply(1, func(work event.Work) event.Effect {
		return event.File{Key: work.Key.String(), Rule: "r", Destination: "app", Path: work.Key.ID + ".json"}
	})
	if _, err := f.d.Step(context.Background(), f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	testkit.Poll(t, 10*time.Second, "the attempt's end", f.unwritten)
	place := filepath.Join(folder, "evt_000001.json")
	before, err := os.Stat(place)
	if err != nil {
		t.Fatal(err)
	}
	f.crash()
	f.runUntil(startTime().Add(time.Hour))
	after, err := os.Stat(place)
	if err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the file was made anew: %v", err)
	}
	if got := f.delivery(1); got.State != event.DeliverySent || len(f.attempts(1)) != 2 {
		t.Errorf("%+v after %d attempts", got, len(f.attempts(1)))
	}
}
