package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"creel/event"
)

// Every event that was acknowledged before a backup begins is in it, while
// others come in; and it is a whole database.
func TestGateO10BackupWhileReceiving(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	var acknowledged atomic.Int64
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for n := range 4 {
		senders.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := sc.Accept(context.Background(), sc.receipt("{}", item(fmt.Sprintf("e%d-%d", n, i), "{}"))); err == nil {
					acknowledged.Add(1)
				}
			}
		})
	}
	for acknowledged.Load() < 50 {
		sc.receive(fmt.Sprintf("own-%d", acknowledged.Add(1)))
	}
	folder := t.TempDir()
	for i := range 3 {
		before := acknowledged.Load()
		copied, err := sc.Backup(t.Context(), filepath.Join(folder, fmt.Sprintf("backup-%d.db", i)))
		must(t, err)
		if copied.Events < before {
			t.Errorf("%d events were acknowledged, the backup has %d", before, copied.Events)
		}
		about, err := os.Stat(copied.Path)
		must(t, err)
		if about.Mode().Perm() != 0o600 || about.Size() != copied.Bytes {
			t.Errorf("the backup is %v of %d bytes, told %d", about.Mode(), about.Size(), copied.Bytes)
		}
	}
	close(stop)
	senders.Wait()
	if _, err := sc.Backup(t.Context(), filepath.Join(folder, "backup-0.db")); !errors.Is(err, ErrExists) {
		t.Errorf("a backup over another: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(folder, "*.partial*"))
	must(t, err)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A restore brings everything back, and never over a file that is in use or in
// the way.
func TestGateO10Restore(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("before")
	w := sc.claim(1)[0]
	sc.finish(done(w, credits("before", "k")))
	backup := filepath.Join(t.TempDir(), "backup.db")
	_, err := sc.Backup(t.Context(), backup)
	must(t, err)
	sc.receive("after")

	for _, replace := range []bool{false, true} {
		if _, err := Restore(t.Context(), backup, sc.path, replace, sc.now); !errors.Is(err, ErrRunning) {
			t.Errorf("restore over a live file, replace %t: %v", replace, err)
		}
	}
	must(t, sc.Close())
	if _, err := Restore(t.Context(), backup, sc.path, false, sc.now); !errors.Is(err, ErrExists) {
		t.Errorf("restore over a file: %v", err)
	}
	restored, err := Restore(t.Context(), backup, sc.path, true, sc.now)
	must(t, err)
	if restored.Events != 1 || restored.Aside == "" {
		t.Errorf("restored %+v", restored)
	}
	sc.open("boot2")
	if _, err := sc.Find(t.Context(), key("after")); !errors.Is(err, event.ErrNotFound) {
		t.Errorf("what came after the backup is there: %v", err)
	}
	want(t, "grants", sc.number(`SELECT count(*) FROM ledger`), 1)
	want(t, "event", sc.detail("before").State, event.Done)
	aside, err := OpenRead(t.Context(), restored.Aside)
	must(t, err)
	_, err = aside.Find(t.Context(), key("after"))
	must(t, errors.Join(err, aside.Close()))
}

// What is no whole backup is refused, and nothing is touched.
func TestGateO10BadBackups(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for i := range 200 {
		sc.receive(fmt.Sprintf("e%d", i))
	}
	folder := t.TempDir()
	good := filepath.Join(folder, "good.db")
	_, err := sc.Backup(t.Context(), good)
	must(t, err)
	bytes, err := os.ReadFile(good)
	must(t, err)
	for name, content := range map[string][]byte{
		"empty": nil, "text": []byte("no database"), "cut": bytes[:len(bytes)/2], "header": bytes[:50],
	} {
		bad := filepath.Join(folder, name)
		must(t, os.WriteFile(bad, content, 0o600))
		target := filepath.Join(folder, name+"-target.db")
		if _, err := Restore(t.Context(), bad, target, false, sc.now); err == nil {
			t.Errorf("%s was restored", name)
		}
		for _, end := range []string{"", partial} {
			if _, err := os.Lstat(target + end); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %s is there", name, target+end)
			}
		}
	}
	if _, err := Restore(t.Context(), filepath.Join(folder, "none"), filepath.Join(folder, "t.db"), false, sc.now); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a backup that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sc.Backup(ctx, filepath.Join(folder, "stopped.db")); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that was stopped: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "stopped*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
