package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"creel/internal/testkit"
)

var (
	shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	routeName  = regexp.MustCompile("`(/[a-z/-]+)")
)

// The examples of docs/api.md run as they stand there, and replay what is dead.
func TestTheExamplesOfTheAPIRun(t *testing.T) {
	t.Parallel()
	s := deadSite(t, 3)
	p := newProgram(t, s.Process, "robot", "operate")
	page, err := os.ReadFile(filepath.Join("..", "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := shellBlock.FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 5 || !strings.Contains(blocks[0][1], "creel token create robot --scope operate") {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, block := range blocks[1:] {
		shell := exec.Command("sh", "-euc", block[1])
		shell.Env = append(os.Environ(), "TOKEN="+p.token, "CREEL="+p.base)
		if out, err := shell.CombinedOutput(); err != nil {
			t.Errorf("%s\n%v\n%s", block[1], err, out)
		}
	}
	await(t, s.Process, 0, "deliveries", "--state", "dead", "--json")
	testkit.Poll(t, soon, "all to be sent again", func() bool { return sentTimes(s) >= 6 })
	var done []string
	for _, a := range lines[actionLine](t, s.Process, "audit", "--json") {
		if a.Actor == "token:robot#1" {
			done = append(done, a.Action+" "+a.Reason)
		}
	}
	slices.Reverse(done)
	if want := []string{"pause deploy", "resume ", "replay bug 412 is fixed", "replay bug 412 is fixed"}; !slices.Equal(done, want) {
		t.Errorf("the audit trail has %q, want %q", done, want)
	}
}

// docs/api.md names every route, and none that there is not.
func TestTheDocsNameEveryRoute(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	routes := map[string]bool{}
	for _, operation := range testkit.ReadOpenAPI(t, "../admin/api/openapi.json").Operations() {
		_, path, _ := strings.Cut(operation, " ")
		routes[path] = true
		fixed, _, _ := strings.Cut(path, "/{")
		if path != "/plans/{id}" && !strings.Contains(string(page), "`"+fixed) && !strings.Contains(string(page), "/api/v1"+path) && !strings.Contains(string(page), "$CREEL"+fixed) {
			t.Errorf("docs/api.md does not name %s", operation)
		}
	}
	for _, name := range routeName.FindAllStringSubmatch(string(page), -1) {
		path := strings.TrimSuffix(name[1], "/")
		if !routes[path] && !routes[path+"/{id}"] && !strings.HasPrefix(path, "/api") {
			t.Errorf("docs/api.md names %s, which there is not", path)
		}
	}
}
