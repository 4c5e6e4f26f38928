package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A number before a noun is written by plural, which knows that there may be
// one: no text of a command has a number before a plural of its own.
func TestNumbersBeforeWords(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	plurals := regexp.MustCompile(`%d ([a-z]+s)\b`)
	free := map[string]bool{"ms": true, "is": true, "was": true, "has": true, "says": true}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, found := range plurals.FindAllStringSubmatch(line, -1) {
				if !free[found[1]] && !strings.Contains(line, "maxRecord") { // a bound is never one
					t.Errorf("%s:%d: %q", file, i+1, found[0])
				}
			}
		}
	}
}
