package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A line that is too long is named, and those behind it are read.
func TestALineThatIsTooLong(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "events.jsonl")
	text := "first\n" + strings.Repeat("x", maxRecord+1) + "\nthird\n" + strings.Repeat("y", maxRecord+1)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := eachRecord(name, "jsonl", func(r record) error {
		if r.bad != nil {
			got = append(got, "too long")
		} else {
			got = append(got, string(r.raw))
		}
		return nil
	})
	if want := "first, too long, third, too long"; err != nil || strings.Join(got, ", ") != want {
		t.Errorf("%v: %q, want %s", err, got, want)
	}
}
