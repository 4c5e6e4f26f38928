package house

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// gateCounts is how many gates each part of docs/gates.md has.
var gateCounts = map[string]int{"R": 13, "A": 15, "D": 10, "O": 14, "F": 8, "P": 15}

const (
	notBuilt = "not yet built"
	// fuzzGate is proved by the fuzz targets of all rooms, whatever their names.
	fuzzGate = "F7"
)

var (
	gateRow  = regexp.MustCompile(`(?m)^\| ([RADOFP]\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)
	testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)\\w+)`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w+)\(`)
	benchRun = regexp.MustCompile("bench `([^`]+)`")
)

// TestGatesAreProved holds docs/gates.md against the tests of the tree.
func TestGatesAreProved(t *testing.T) {
	t.Parallel()
	root := treeRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "gates.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range gateProblems(root, string(page), testsOf(t, root)) {
		t.Error(problem)
	}
}

// gateProblems lists what is wrong with the page.
func gateProblems(root, page string, tests map[string]bool) (problems []string) {
	rows := map[string][]string{}
	for _, row := range gateRow.FindAllStringSubmatch(page, -1) {
		if rows[row[1]] != nil {
			problems = append(problems, fmt.Sprintf("%s stands twice in docs/gates.md", row[1]))
		}
		rows[row[1]] = row
	}
	for part, n := range gateCounts {
		for i := 1; i <= n; i++ {
			gate := fmt.Sprintf("%s%d", part, i)
			row := rows[gate]
			if row == nil {
				problems = append(problems, gate+" has no row in docs/gates.md")
				continue
			}
			problems = append(problems, rowProblems(root, gate, row[3], tests)...)
			delete(rows, gate)
		}
	}
	for gate := range rows {
		problems = append(problems, gate+" is no gate")
	}
	for _, name := range testName.FindAllStringSubmatch(gateRow.ReplaceAllString(page, ""), -1) {
		if !tests[name[1]] {
			problems = append(problems, fmt.Sprintf("docs/gates.md names %s, which does not exist", name[1]))
		}
	}
	return problems
}

func rowProblems(root, gate, proof string, tests map[string]bool) (problems []string) {
	for _, name := range testName.FindAllStringSubmatch(proof, -1) {
		if !tests[name[1]] {
			problems = append(problems, fmt.Sprintf("%s names %s, which does not exist", gate, name[1]))
		}
	}
	own := ""
	named := regexp.MustCompile(`^(Test|Fuzz|Benchmark)Gate` + gate + `([^0-9]|$)`)
	for name := range tests {
		if named.MatchString(name) {
			own = name
		}
	}
	switch bench := benchRun.FindStringSubmatch(proof); {
	case strings.TrimSpace(proof) == notBuilt && own != "":
		return append(problems, fmt.Sprintf("%s is marked %q, but there is %s: list it", gate, notBuilt, own))
	case strings.TrimSpace(proof) == notBuilt:
		return problems
	case bench != nil:
		return append(problems, benchProblems(root, gate, bench[1])...)
	case own == "" && !(gate == fuzzGate && strings.Contains(proof, "`Fuzz")):
		return append(problems, fmt.Sprintf("%s is not marked %q and no test is named TestGate%s…", gate, notBuilt, gate))
	}
	return problems
}

// benchProblems checks that a benchmark's command is there and knows its gate.
func benchProblems(root, gate, command string) []string {
	if script := strings.Fields(command)[0]; script != "go" {
		if _, err := os.Stat(filepath.Join(root, script)); err != nil {
			return []string{fmt.Sprintf("%s is measured by %s, which does not exist", gate, script)}
		}
		return nil
	}
	driver, err := os.ReadFile(filepath.Join(root, "internal", "load", "bench.go"))
	if err != nil || !strings.HasSuffix(command, "-only "+gate) || !strings.Contains(string(driver), fmt.Sprintf("{%q, ", gate)) {
		return []string{fmt.Sprintf("%s is measured by %q, which the driver does not know", gate, command)}
	}
	return nil
}

// testsOf lists the test functions of the tree.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules" || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[match[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// treeRoot is the folder that holds go.mod, two above this one.
func treeRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestGateProblemsAreSeen plants each defect that the page may have.
func TestGateProblemsAreSeen(t *testing.T) {
	t.Parallel()
	root := treeRoot(t)
	var blank strings.Builder
	for part, n := range gateCounts {
		for i := 1; i <= n; i++ {
			fmt.Fprintf(&blank, "| %s%d | promise | %s | — |\n", part, i, notBuilt)
		}
	}
	good := strings.NewReplacer("R2 | promise | "+notBuilt, "R2 | promise | `TestGateR2`", "R10 | promise | "+notBuilt, "R10 | promise | `TestGateR10Contract`").Replace(blank.String())
	tests := map[string]bool{"TestGateR10Contract": true, "TestGateR2": true}
	for name, c := range map[string]struct{ old, new, want string }{
		"sound":               {"", "", ""},
		"built, not listed":   {"R2 | promise | `TestGateR2`", "R2 | promise | not yet built", "but there is TestGateR2"},
		"row gone":            {"| A3 |", "| none |", "A3 has no row"},
		"no test of its name": {"R1 | promise | not yet built", "R1 | promise | built", "no test is named TestGateR1"},
		"listed test missing": {"R2 | promise | `TestGateR2`", "R2 | promise | `TestGateR2` `TestGateR2Gone`", "TestGateR2Gone, which does not exist"},
		"other test missing":  {"| F1 | promise", "`TestGone`\n| F1 | promise", "docs/gates.md names TestGone, which does not exist"},
		"unknown benchmark":   {"P9 | promise | not yet built", "P9 | promise | bench `go run ./internal/load bench -only P99`", "the driver does not know"},
		"twice":               {"| F1 | promise", "| F2 | promise | x | y |\n| F1 | promise", "F2 stands twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := strings.Join(gateProblems(root, strings.Replace(good, c.old, c.new, 1), tests), "\n")
			if (c.want == "") != (problems == "") || !strings.Contains(problems, c.want) {
				t.Fatalf("got %q, want %q", problems, c.want)
			}
		})
	}
}
