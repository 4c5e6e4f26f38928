package deliver

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

func folder(t testing.TB, mode string) *Folder {
	t.Helper()
	d, problems := NewFolder("archive", config.Destination{Folder: t.TempDir(), Mode: mode}, "destination.archive", Options{Env: noEnv, Clock: time.Now})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return d
}

func document(key, path, body string) event.Shipment {
	s := shipment()
	s.Key, s.Destination, s.Target, s.Payload.Body = key, "archive", path, []byte(body)
	return s
}

// tree lists what stands in a folder, links not followed.
func tree(t testing.TB, d *Folder) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(d.folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == d.folder {
			return err
		}
		about, err := entry.Info()
		short, _ := filepath.Rel(d.folder, name)
		content, _ := os.ReadFile(name)
		fmt.Fprintf(&out, "%s %s %q\n", about.Mode(), short, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func (d *Folder) outcome(t testing.TB, s event.Shipment, outcome event.Outcome, told string) {
	t.Helper()
	got := d.Attempt(t.Context(), s, time.Now())
	if got.Attempt.Outcome != outcome || !strings.Contains(got.Attempt.Error, told) || (told == "") != (got.Attempt.Error == "") {
		t.Errorf("%s: %+v", s.Target, got.Attempt)
	}
}

func TestFilesAreWholeAndStayWithTheirDelivery(t *testing.T) {
	t.Parallel()
	d := folder(t, "")
	one := document("k1", "stripe/2026/evt_1.json", "{1}\x00\xff")
	d.outcome(t, one, event.OK, "")
	d.outcome(t, one, event.OK, "") // again, after an answer that was lost
	d.outcome(t, document("k2", "stripe/2026/evt_1.json", "{1}\x00\xff"), event.OK, "")
	d.outcome(t, document("k3", "stripe/2026/evt_1.json", "{2}\x00\xff"), event.Permanent, "another file stands there already")
	d.outcome(t, document("k3", "stripe/2026/evt_1.json", "{1}"), event.Permanent, "another file stands there already")
	d.outcome(t, document("k3", "stripe/2026", "{1}"), event.Permanent, "another file stands there already")
	d.outcome(t, document("k3", "stripe/2026/evt_1.json/below", "{1}"), event.Permanent, "another file stands there already")
	d.outcome(t, document("k4", "empty", ""), event.OK, "")
	want := `-rw------- empty ""
drwx------ stripe ""
drwx------ stripe/2026 ""
-rw------- stripe/2026/evt_1.json "{1}\x00\xff"
`
	if got := tree(t, d); got != want {
		t.Errorf("the folder holds\n%s\nwant\n%s", got, want)
	}
}

// TestFilesOfAGroup is not parallel: the umask is that of the process.
func TestFilesOfAGroup(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	d := folder(t, "0640")
	d.outcome(t, document("k", "a/b", "x"), event.OK, "")
	if got := tree(t, d); got != "drwxr-x--- a \"\"\n-rw-r----- a/b \"x\"\n" {
		t.Errorf("the folder holds\n%s", got)
	}
}

// No path and no link leads out of the folder.
func TestFilesStayInTheirFolder(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	target := filepath.Join(outside, "target")
	if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := folder(t, "")
	for name, to := range map[string]string{"link": target, "out": outside, "dangling": filepath.Join(outside, "new"), "up": ".."} {
		if err := os.Symlink(to, filepath.Join(d.folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	temporary := event.TemporaryFile + event.WebhookID("k", "archive\x00planted")
	if err := os.Symlink(target, filepath.Join(d.folder, temporary)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../x", "a/../../x", "/etc/x", "a//b", "", ".", "a/.", "a\x00b", "a\nb", "\xff", strings.Repeat("x", 256), ".creel-x"} {
		d.outcome(t, document("k", path, "evil"), event.Permanent, "the file can not be made: its path")
	}
	d.outcome(t, document("k", "link", "evil"), event.Permanent, "another file stands there already")
	d.outcome(t, document("k", "dangling", "evil"), event.Permanent, "another file stands there already")
	d.outcome(t, document("k", "out/x", "evil"), event.Transient, "escapes")
	d.outcome(t, document("k", "up/x", "evil"), event.Transient, "escapes")
	d.outcome(t, document("k", "planted", "good"), event.OK, "")
	entries, err := os.ReadDir(outside)
	if content, _ := os.ReadFile(target); err != nil || len(entries) != 1 || string(content) != "mine" {
		t.Errorf("something was written outside: %v %v %q", entries, err, content)
	}
}

// An attempt that was cut off left a part of its file.
func TestFilesReplaceWhatACrashLeft(t *testing.T) {
	t.Parallel()
	d := folder(t, "")
	s := document("k", "a.json", "whole")
	left := filepath.Join(d.folder, event.TemporaryFile+event.WebhookID("k", "archive\x00a.json"))
	if err := os.WriteFile(left, []byte("who"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.outcome(t, s, event.OK, "")
	if got := tree(t, d); got != "-rw------- a.json \"whole\"\n" {
		t.Errorf("the folder holds\n%s", got)
	}
}

// Of two operations that want one path at the same moment one gets it.
func TestFilesOfTwoOperationsAtOnce(t *testing.T) {
	t.Parallel()
	d := folder(t, "")
	for round := range 20 {
		results := make([]Result, 8)
		var all sync.WaitGroup
		for i := range results {
			all.Go(func() {
				s := document(fmt.Sprint("k", i), fmt.Sprint("a/", round), fmt.Sprint("body of ", i))
				results[i] = d.Attempt(t.Context(), s, time.Now())
			})
		}
		all.Wait()
		won := 0
		for i, r := range results {
			switch r.Attempt.Outcome {
			case event.OK:
				won++
				if content, _ := os.ReadFile(filepath.Join(d.folder, "a", fmt.Sprint(round))); string(content) != fmt.Sprint("body of ", i) {
					t.Errorf("%d was told that its file is there, and %q is", i, content)
				}
			case event.Permanent:
			default:
				t.Errorf("%+v", r.Attempt)
			}
		}
		if won != 1 {
			t.Fatalf("%d operations got the path", won)
		}
	}
}

// A disk in trouble is no fault of the event.
func TestFilesWaitForTheDisk(t *testing.T) {
	t.Parallel()
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EACCES, syscall.ENOENT} {
		if got := ClassifyFile(fmt.Errorf("writing: %w", &fs.PathError{Op: "write", Path: "x", Err: err})); got != event.Transient {
			t.Errorf("%v is %s", err, got)
		}
	}
	d := folder(t, "")
	if err := os.Remove(d.folder); err != nil {
		t.Fatal(err)
	}
	s := document("k", "a", "x")
	d.outcome(t, s, event.Transient, "opening the folder")
	if err := os.Mkdir(d.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	d.outcome(t, s, event.OK, "")
}

func TestFolderProblems(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]config.Destination{
		"destination.archive.folder: the folder can not be found: no such file or directory (make it: mkdir -p ": {Folder: plain + "s"},
		"destination.archive.folder: it is not a folder":                                                         {Folder: plain},
		`destination.archive.mode: "rw" is not a mode of files`:                                                  {Folder: t.TempDir(), Mode: "rw"},
	} {
		d, problems := NewFolder("archive", cfg, "destination.archive", Options{Env: noEnv, Clock: time.Now})
		if len(problems.Faults()) != 1 || d != nil || !strings.Contains(problems.Error(), want) {
			t.Errorf("want %q, got %v", want, problems)
		}
	}
}
