package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"creel/internal/testkit"
)

// defect is one line of testdata/planted.toml that is marked with what must
// be said about it.
type defect struct {
	line int
	want string
}

func planted(t *testing.T) (text string, defects []defect) {
	t.Helper()
	data, err := os.ReadFile("testdata/planted.toml")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if _, want, found := strings.Cut(line, "# WANT "); found {
			for part := range strings.SplitSeq(want, " & ") {
				defects = append(defects, defect{i + 1, part})
			}
		}
	}
	return string(data), defects
}

// problemLine is a problem as creel check --json prints it.
type problemLine struct {
	File, Path, Message, Hint string
	Level                     string
	Line                      int
}

func (p problemLine) String() string {
	return fmt.Sprintf("%s:%d: %s: %s (%s)", p.File, p.Line, p.Path, p.Message, p.Hint)
}

// TestGateO9 plants defects of every kind: all of them are told at once, by
// check and by serve alike, with file, line, key and what to do, and nothing
// that is sound is complained about.
func TestGateO9(t *testing.T) {
	t.Parallel()
	text, defects := planted(t)
	if len(defects) < 40 {
		t.Fatalf("only %d defects are planted", len(defects))
	}
	p := testkit.NewProcess(t, text, "GOOD=0123456789abcdef0123", "SHORT=0123", "STANDARD=whsec_not/base64!")
	code, stdout, stderr := p.Run(t, "check", "--json")
	if code != 2 || len(stderr) > 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	var problems []problemLine
	for line := range strings.Lines(string(stdout)) {
		problems = append(problems, decode[problemLine](t, line))
	}
	wanted := map[int]bool{}
	for _, d := range defects {
		wanted[d.line] = true
		if !told(problems, d) {
			t.Errorf("line %d: nothing says %q", d.line, d.want)
		}
	}
	for _, p := range problems {
		if p.Level != "error" {
			continue
		}
		if !wanted[p.Line] {
			t.Errorf("a sound line is complained about: %v", p)
		}
		if p.File != "creel.toml" || p.Line == 0 || p.Path == "" || p.Hint == "" {
			t.Errorf("without file, line, key or hint: %v", p)
		}
	}

	// The text form and serve say the same.
	code, stdout, stderr = p.Run(t, "check")
	if code != 2 || !strings.HasPrefix(string(stderr), "creel.toml: ") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	served := command(t, p, 2, "serve")
	for _, p := range problems {
		line := p.String() + "\n"
		if p.Hint == "" {
			line = p.Message
		}
		if p.Level != "error" {
			continue
		}
		if !strings.Contains(string(stdout), line) {
			t.Errorf("check without --json does not say %q", line)
		}
		if !strings.Contains(served, line) {
			t.Errorf("serve does not say %q", line)
		}
	}
	if !strings.HasSuffix(served, "Try: creel check\n") {
		t.Errorf("serve ends with %q", served[max(0, len(served)-80):])
	}
	if entries, err := os.ReadDir(p.Dir); err != nil || len(entries) != 1 {
		t.Errorf("a refused start left files: %v %v", entries, err)
	}
}

func told(problems []problemLine, d defect) bool {
	for _, p := range problems {
		if p.Line == d.line && p.Level == "error" && strings.Contains(p.String(), d.want) {
			return true
		}
	}
	return false
}
