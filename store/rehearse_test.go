package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"creel/event"
)

// TestBugSQL05Rehearsal: what a start would make of a copy is found out on the
// copy: whole and damaged ones, those of other versions, and never one that a
// server has open.
func TestBugSQL05Rehearsal(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.deliver("d")
	for i := range 50 {
		sc.receive(fmt.Sprintf("e%d", i))
	}
	copyOf := func(name string) string {
		path := filepath.Join(t.TempDir(), name)
		_, err := sc.Backup(t.Context(), path)
		must(t, err)
		return path
	}
	now := func() time.Time { return sc.now }
	good := copyOf("good.db")
	for range 2 { // the second finds a copy that was rehearsed
		done, err := Rehearse(t.Context(), good, now)
		must(t, err)
		if done.From != done.To || done.To == 0 || done.Events != 51 || done.Bytes == 0 || done.Path != good {
			t.Errorf("%+v", done)
		}
	}
	r, err := OpenRead(t.Context(), good)
	must(t, err)
	names, counts, err := r.OpenSources(t.Context())
	must(t, err)
	want(t, "sources", fmt.Sprint(names, counts), "[gen] map[gen:50]")
	census, err := r.Census(t.Context())
	must(t, err)
	waiting, dead := census.Waiting("app")
	want(t, "waiting", waiting+dead, 1)
	must(t, r.Close())

	older := copyOf("older.db")
	outsider(t, older, `UPDATE schema_step SET number = 99`)
	dangling := copyOf("dangling.db")
	c, err := connect(dataSource(dangling, shared(2*time.Second), "mode=rw"))
	must(t, err)
	must(t, c.script(`PRAGMA foreign_keys = OFF; DELETE FROM event`))
	must(t, c.close())
	text := filepath.Join(t.TempDir(), "text.db")
	must(t, os.WriteFile(text, []byte("this is no database, but it is long enough to look like a header of one"), 0o600))
	empty := filepath.Join(t.TempDir(), "empty.db")
	must(t, os.WriteFile(empty, nil, 0o600))
	damaged := copyOf("damaged.db")
	bytes, err := os.ReadFile(damaged)
	must(t, err)
	for i := len(bytes) / 2; i < len(bytes)/2+8192; i++ {
		bytes[i] ^= 0x5a
	}
	must(t, os.WriteFile(damaged, bytes, 0o600))
	for path, wanted := range map[string]error{sc.path: ErrRunning, older: ErrNewer, dangling: errDangling, text: ErrForeign, empty: ErrForeign,
		filepath.Join(t.TempDir(), "none.db"): os.ErrNotExist} {
		before, _ := os.ReadFile(path)
		if _, err := Rehearse(t.Context(), path, now); !errors.Is(err, wanted) {
			t.Errorf("%s: %v, want %v", filepath.Base(path), err, wanted)
		}
		if after, _ := os.ReadFile(path); path != sc.path && string(before) != string(after) {
			t.Errorf("%s was changed", filepath.Base(path))
		}
	}
	if _, err := Rehearse(t.Context(), damaged, now); !errors.Is(err, errDamaged) && !errors.Is(err, ErrCorrupt) {
		t.Errorf("a damaged one: %v", err)
	}
	want(t, "still there", sc.detail("e0").State, event.Pending)
}
