package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Whoever asks whether a server runs takes the lock for a moment. It must not
// look like a server to one that starts in that moment.
func TestAskingWhetherAServerRunsStopsNoStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "creel.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for ctx.Err() == nil {
				_, _ = Running(path)
			}
		})
	}
	for range 300 {
		held, err := acquire(path)
		if err != nil {
			t.Error(err)
			break
		}
		if err := held.release(); err != nil {
			t.Error(err)
		}
	}
	stop()
	asking.Wait()
}

// Who may not read a database is told whose it is.
func TestWhoseADatabaseIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "creel.db")
	must(t, os.WriteFile(path, nil, 0o600))
	if got, want := whoseIs(path), fmt.Sprintf("the user of this process (uid %d)", os.Getuid()); got != want {
		t.Errorf("of my own: %q", got)
	}
	if os.Geteuid() != 0 {
		return // only root can give a file away
	}
	must(t, os.Chown(path, 4242, -1))
	if got := whoseIs(path); !strings.Contains(got, "belongs to uid 4242: run it as that user") {
		t.Errorf("of another's: %q", got)
	}
}
