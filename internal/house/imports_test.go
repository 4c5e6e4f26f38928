package house

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "creel"

// below lists what each room may import of ours. A room that is not listed is
// a room without a plan: add it here and to docs/architecture.md.
func below() map[string][]string {
	leaves := []string{"event", "config", "path", "meter"}
	knowing := append(slices.Clone(leaves), "source", "handlers", "deliver")
	all := append(slices.Clone(knowing), "store", "receiver", "jobs", "admin", "admin/page", "admin/api")
	return map[string][]string{
		"":           {"cli"},
		"cli":        append(slices.Clone(all), "app", "drill"),
		"drill":      append(slices.Clone(all), "app"),
		"app":        all,
		"receiver":   knowing,
		"jobs":       knowing,
		"admin/page": append(slices.Clone(knowing), "admin"),
		"admin/api":  append(slices.Clone(knowing), "admin", "admin/page"),
		"admin":      knowing,
		"source":     leaves,
		"handlers":   leaves,
		"deliver":    leaves,
		"store":      {"event", "meter"},
		"path":       {"event"},
		"config":     {},
		"event":      {},
		"meter":      {},
	}
}

// reserved lists packages from outside that belong to some rooms alone. A
// pattern is an import path, with /... what is below it too.
func reserved() []struct {
	pattern string
	rooms   []string
	why     string
} {
	return []struct {
		pattern string
		rooms   []string
		why     string
	}{
		{"database/sql/...", []string{"store"}, "only store knows SQL"},
		{"modernc.org/...", []string{"store"}, "only store knows the driver"},
		{"github.com/julienschmidt/httprouter", []string{"receiver", "admin", "admin/page", "admin/api"}, "only receiver and admin have routes"},
		{"github.com/BurntSushi/toml", []string{"config"}, "only config reads TOML, strictly"},
		{"github.com/spf13/cobra", []string{"cli"}, "only cli is a command line"},
		{"github.com/wneessen/go-mail/...", []string{"deliver"}, "only deliver speaks SMTP"},
		{"C", nil, "the binary is free of CGo"},
		{"testing/...", nil, "only tests test"},
		{"net/http/httptest", nil, "only tests test"},
	}
}

// kits are packages that tests alone may use: none of them is in the binary.
func kits() []string {
	return []string{
		"testing/...", "net/http/httptest", module + "/internal/testkit/...", module + "/internal/crash/...", module + "/internal/model/...", module + "/internal/load/...",
		"github.com/google/go-cmp/...", "github.com/rogpeppe/go-internal/...", "go.uber.org/goleak/...", "pgregory.net/rapid/...",
		"github.com/standard-webhooks/...", "github.com/emersion/...", "github.com/chromedp/...", "github.com/prometheus/...",
	}
}

// listed is what go list says about a package.
type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// room is the folder of a package below the module, "" for main.
func (p listed) room() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func goList(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,Imports,Deps"}, args...)...)
	cmd.Dir = treeRoot(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, &stderr)
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p listed
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return packages
}

// Imports point down, and what belongs to one room stays in it.
func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	for _, tags := range []string{"", "faults"} {
		packages := goList(t, "-tags", tags, "./...")
		if len(packages) < 2 {
			t.Fatalf("go list found %d packages", len(packages))
		}
		for _, problem := range importProblems(packages) {
			t.Error(problem)
		}
	}
}

// importProblems judges the imports that are not those of tests. Tests may
// import what they need.
func importProblems(packages []listed) (problems []string) {
	plan := below()
	for _, p := range packages {
		room := p.room()
		if strings.HasPrefix(room, "internal/") {
			problems = append(problems, internalProblems(p)...)
			continue
		}
		if room == "examples" || strings.HasPrefix(room, "examples/") {
			continue // a custom binary may import what is stable
		}
		allowed, known := plan[room]
		if !known {
			problems = append(problems, fmt.Sprintf("the room %s is not in the plan of the house", room))
		}
		for _, path := range p.Imports {
			if other, ours := ownRoom(path); ours && known && other != "internal/fault" && !slices.Contains(allowed, other) {
				problems = append(problems, fmt.Sprintf("%s imports %s, which is not below it", name(room), name(other)))
			}
			if room == "event" && strings.Contains(strings.Split(path, "/")[0], ".") {
				problems = append(problems, fmt.Sprintf("event imports %s: the leaf has the standard library alone", path))
			}
			for _, rule := range reserved() {
				if fits(path, rule.pattern) && !slices.Contains(rule.rooms, room) {
					problems = append(problems, fmt.Sprintf("%s imports %s: %s", name(room), path, rule.why))
				}
			}
		}
	}
	return problems
}

// internalProblems judges what serves tests and measurements: fault points
// are the only thing of it that a room may import, so they import nothing of
// ours; the test kit judges every room, so it imports none.
func internalProblems(p listed) (problems []string) {
	if room := p.room(); room == "internal/fault" || room == "internal/testkit" {
		for _, path := range p.Imports {
			if other, ours := ownRoom(path); ours {
				problems = append(problems, fmt.Sprintf("%s imports %s and must import nothing of ours", room, name(other)))
			}
		}
	}
	return problems
}

func ownRoom(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

func name(room string) string {
	if room == "" {
		return "main"
	}
	return room
}

func fits(path, pattern string) bool {
	base, below := strings.CutSuffix(pattern, "/...")
	return path == base || below && strings.HasPrefix(path, base+"/")
}

// Nothing that serves tests is in the binary.
func TestBinaryHasNoTestKits(t *testing.T) {
	t.Parallel()
	main := goList(t, ".")
	if len(main) != 1 {
		t.Fatalf("%d main packages", len(main))
	}
	for _, problem := range kitProblems(main[0]) {
		t.Error(problem)
	}
}

func kitProblems(binary listed) (problems []string) {
	for _, path := range binary.Deps {
		for _, kit := range kits() {
			if fits(path, kit) {
				problems = append(problems, fmt.Sprintf("the binary contains %s", path))
			}
		}
	}
	return problems
}

// Each rule sees what it forbids.
func TestImportProblemsAreSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, imports, want string }{
		{"creel", "creel/cli", ""},
		{"creel", "creel/app", "main imports app, which is not below it"},
		{"creel/cli", "creel/app", ""},
		{"creel/app", "creel/store", ""},
		{"creel/app", "creel/cli", "app imports cli, which is not below it"},
		{"creel/receiver", "creel/source", ""},
		{"creel/receiver", "creel/store", "receiver imports store, which is not below it"},
		{"creel/jobs", "creel/store", "jobs imports store, which is not below it"},
		{"creel/admin", "creel/store", "admin imports store, which is not below it"},
		{"creel/jobs", "creel/receiver", "jobs imports receiver, which is not below it"},
		{"creel/store", "creel/config", "store imports config, which is not below it"},
		{"creel/config", "creel/event", "config imports event, which is not below it"},
		{"creel/event", "creel/config", "event imports config, which is not below it"},
		{"creel/event", "github.com/rs/zerolog", "event imports github.com/rs/zerolog: the leaf"},
		{"creel/path", "creel/config", "path imports config, which is not below it"},
		{"creel/source", "creel/handlers", "source imports handlers, which is not below it"},
		{"creel/store", "database/sql/driver", ""},
		{"creel/app", "database/sql", "app imports database/sql: only store"},
		{"creel/admin", "modernc.org/sqlite", "admin imports modernc.org/sqlite: only store"},
		{"creel/admin", "github.com/julienschmidt/httprouter", ""},
		{"creel/app", "github.com/julienschmidt/httprouter", "app imports github.com/julienschmidt/httprouter: only receiver and admin"},
		{"creel/store", "testing", "store imports testing: only tests"},
		{"creel/store", "creel/internal/testkit", "store imports internal/testkit, which is not below it"},
		{"creel/store", "creel/internal/fault", ""},
		{"creel/internal/testkit", "creel/store", "internal/testkit imports store and must"},
		{"creel/internal/crash", "creel/store", ""},
		{"creel/util", "fmt", "the room util is not in the plan"},
	} {
		got := strings.Join(importProblems([]listed{{ImportPath: c.from, Imports: []string{c.imports}}}), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: got %q, want %q", c.from, c.imports, got, c.want)
		}
	}
	for path, want := range map[string]bool{"testing": true, "testing/iotest": true, "creel/internal/testkit": true, "github.com/google/go-cmp/cmp": true,
		"creel/store": false, "testingx": false} {
		if got := len(kitProblems(listed{Deps: []string{path}})) > 0; got != want {
			t.Errorf("%s in the binary: seen %v, want %v", path, got, want)
		}
	}
}

// modernc.org/sqlite is generated code that was tested with one version of
// modernc.org/libc; another one has crashed before.
func TestLibcIsTheDriversOwn(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`modernc\.org/libc (v\S+)`)
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := version.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s does not name modernc.org/libc", file)
		}
		return string(found[1])
	}
	cmd := exec.Command("go", "list", "-m", "-f", "{{.GoMod}}", "modernc.org/sqlite")
	cmd.Dir = treeRoot(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want, got := read(strings.TrimSpace(string(out))), read(filepath.Join(treeRoot(t), "go.mod"))
	if got != want {
		t.Errorf("go.mod has modernc.org/libc %s, modernc.org/sqlite was tested with %s", got, want)
	}
}
