package drill

import (
	"os"
	"path/filepath"
	"testing"
)

// What a killed drill left is removed by the next one: not what somebody works
// in, wanted to keep, or owns who is no drill of ours.
func TestKilledDrillsAreSweptUp(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folders := map[string]*scratchFolder{}
	for _, name := range []string{"killed", "at work", "kept"} {
		f, err := makeFolder()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(f.path, "template.db"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		folders[name] = f
	}
	if err := folders["killed"].lock.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	if err := folders["kept"].leave(true); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(os.TempDir(), "creel-drill-link")
	if err := os.Symlink(folders["kept"].path, other); err != nil {
		t.Fatal(err)
	}
	next, err := makeFolder()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"killed": false, "at work": true, "kept": true} {
		_, err := os.Stat(filepath.Join(folders[name].path, "template.db"))
		if there := err == nil; there != want {
			t.Errorf("the folder %s is there: %v, want %v", name, there, want)
		}
	}
	for _, f := range []*scratchFolder{next, folders["at work"]} {
		if err := f.leave(false); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(f.path); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", f.path, err)
		}
	}
}
