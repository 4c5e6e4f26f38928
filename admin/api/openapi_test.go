package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"creel/admin/api"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// The description that is served is the one that the routes and the types make:
// no route is missing in it, and none stands in it that there is not.
func TestOpenAPIIsWhatTheRoutesAre(t *testing.T) {
	t.Parallel()
	made, missing := describe(readComments(t))
	for _, name := range missing {
		t.Errorf("the parameter %s has no text", name)
	}
	var want bytes.Buffer
	write(t, &want, made, "")
	want.WriteByte('\n')
	if *update {
		if err := os.WriteFile("openapi.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want.Bytes(), api.Description) {
		t.Errorf("openapi.json is not what the routes are: go test ./admin/api -run OpenAPI -update writes it anew\n%s", firstDifference(string(api.Description), want.String()))
	}
}

func firstDifference(have, want string) string {
	a, b := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "have " + a[i] + "\nwant " + b[i]
		}
	}
	return "one is longer"
}

// Every route says what it takes and what it answers, under a name of its own.
func TestRoutesAreWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range api.Routes() {
		id := operationID(r)
		if seen[id] || r.Text == "" || !strings.HasSuffix(r.Text, ".") && !strings.HasSuffix(r.Text, "prints.") {
			t.Errorf("%s %s: %s", r.Method, r.Path, r.Text)
		}
		if seen[id] = true; r.Answer == nil || (r.Method == "POST") != (r.Ask != nil) || r.Method != "GET" && r.Method != "POST" {
			t.Errorf("%s %s has no answer, or a body where it needs none", r.Method, r.Path)
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d routes", len(seen))
	}
}

// write writes a value on one line where that is short, else a member on each.
func write(t *testing.T, to *bytes.Buffer, value any, indent string) {
	t.Helper()
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	members, is := value.(object)
	if text := bytes.TrimSpace(line.Bytes()); !is || len(text)+len(indent) <= 180 {
		to.Write(text)
		return
	}
	to.WriteString("{")
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			to.WriteString(",")
		}
		fmt.Fprintf(to, "\n%s %q: ", indent, name)
		write(t, to, members[name], indent+" ")
	}
	to.WriteString("\n" + indent + "}")
}
