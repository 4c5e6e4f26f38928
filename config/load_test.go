package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// lookup is an environment for tests.
func lookup(pairs ...string) Environment {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func testEnvironment() Environment {
	return lookup("STRIPE", "whsec_0123456789abcdef", "EMPTY", "")
}

// write puts a file into a folder of the test's own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	full := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return full
}

// has tells whether one problem prints with all of the words in it.
func has(problems Problems, words ...string) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(p.String(), word) })
	})
}

// Each bad file is named after its defect; what is told about it stands
// beside it.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.toml")
	if err != nil || len(names) == 0 {
		t.Fatalf("bad files: %v %v", names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".toml"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			_, problems := Parse(name, text, testEnvironment())
			if problems.Err() == nil {
				t.Error("loaded without a fault")
			}
			got := strings.ReplaceAll(problems.Error()+"\n", mustAbs(t, "testdata"), "TESTDATA")
			if strings.Contains(got, "canary") {
				t.Errorf("a secret is told:\n%s", got)
			}
			golden := strings.TrimSuffix(name, ".toml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("problems differ (-want +got):\n%s", diff)
			}
		})
	}
}

func mustAbs(t *testing.T, name string) string {
	t.Helper()
	full, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return full
}

// Every planted defect is reported at once, on its own line, with its key and
// a hint; nothing else is reported as a fault.
func TestGateO9PlantedDefects(t *testing.T) {
	t.Parallel()
	const name = "testdata/planted.toml"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, _, problems := Load(name, testEnvironment())
	faults := problems.Faults()
	for i, line := range strings.Split(string(text), "\n") {
		_, want, marked := strings.Cut(line, "# WANT ")
		var here Problems
		for _, p := range faults {
			if p.Line == i+1 {
				here = append(here, p)
			}
		}
		switch {
		case marked && !has(here, want):
			t.Errorf("line %d: no problem says %q; got:\n%s", i+1, want, here)
		case !marked && len(here) > 0:
			t.Errorf("line %d has no defect, but:\n%s", i+1, here)
		}
	}
	for _, p := range faults {
		if p.Path == "" || p.Line == 0 || p.File != name || p.Hint == "" {
			t.Errorf("without path, line, file or hint: %s", p)
		}
	}
}

func TestBugCFG01(t *testing.T) {
	t.Parallel()
	for text, words := range map[string][]string{
		"[[source]]\nname = \"gen\"\nprovider = \"x\"\nsecert = \"x\"": {":4: ", "source[0].secert", "unknown key"},
		"[log]\ndatabase = \"x.db\"":                                   {":2: ", "log.database", "unknown key", "belongs at the top"},
		"[sorces.gen]\nsecret = \"x\"":                                 {":1: ", "sorces", "unknown key", "source"},
		"Listen = \"127.0.0.1:1\"":                                     {":1: ", "Listen", "did you mean listen?"},
	} {
		name := write(t, "creel.toml", text)
		_, _, problems := Load(name, lookup())
		if !has(problems.Faults(), append(words, name)...) {
			t.Errorf("%s\ngot: %s", text, problems)
		}
	}
}

func TestBugCFG02(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{`600`, `"600"`, `"10 minutes"`, `"-5s"`, `0`, `"0"`, `"0s"`, `""`, `"5 s"`, `"1h 5m"`, `"+5s"`, `"s"`,
		`5.5`, `true`, `["5s"]`, `"1e3s"`, `"99999999999h"`, `"9999999d"`} {
		cfg, problems := Parse("creel.toml", []byte("[worker]\ntimeout = "+bad), lookup())
		if !has(problems.Faults(), "creel.toml:2: worker.timeout: ", `"`) {
			t.Errorf("timeout = %s: %s", bad, problems)
		}
		if cfg.Worker.Timeout != Default().Worker.Timeout {
			t.Errorf("timeout = %s became %v", bad, cfg.Worker.Timeout)
		}
	}
	cfg, problems := Parse("creel.toml", []byte("[worker]\ntimeout = \"600s\""), lookup())
	if problems.Err() != nil || cfg.Worker.Timeout.String() != "10m0s" {
		t.Errorf("600s became %v: %v", cfg.Worker.Timeout, problems)
	}
}

func TestLoadFillsDefaults(t *testing.T) {
	t.Parallel()
	name := write(t, "creel.toml", `
[[source]]
name     = "stripe"
provider = "stripe"
secrets  = ["env:STRIPE", "file:old"]
forward  = "app"
body_window = "0s"

[destination.app]
url  = "http://127.0.0.1:3000/"
rate = "100/m"
retry = "own"

[retry.own]
first = "5s"
attempts = 6

[retry.list]
delays = ["5s"]
retry_4xx = true
`)
	if err := os.WriteFile(filepath.Join(filepath.Dir(name), "old"), []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, file, problems := Load(name, testEnvironment())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := Default()
	want.Database = filepath.Join(filepath.Dir(name), "creel.db")
	s := DefaultSource()
	s.Name, s.Provider, s.Forward = "stripe", "stripe", StringList{"app"}
	s.Secrets = []Secret{NewSecret("env:STRIPE"), NewSecret("file:" + filepath.Join(filepath.Dir(name), "old"))}
	s.BodyWindow = new(Duration)
	want.Sources = []Source{s}
	d := DefaultDestination()
	d.URL, d.Rate, d.Retry = "http://127.0.0.1:3000/", Rate(100.0/60), "own"
	want.Destinations["app"] = d
	want.Retries["own"] = Retry{First: Duration(5e9), Factor: 2, Max: Duration(time.Hour), Attempts: 6}
	want.Retries["list"] = Retry{Delays: []Duration{Duration(5e9)}, Retry4xx: true}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Error(diff)
	}
	for path, line := range map[string]int{"source[0].secrets[1]": 5, "source[0].verify.signed": 2, "destination.app.url": 10,
		"retry.own": 14, "listen": 0, "source": 2} {
		if got := file.Line(path); got != line {
			t.Errorf("line of %s: got %d, want %d", path, got, line)
		}
	}
}

// Later steps know paths only; the file adds the place, and says nothing
// twice about a value that Load has reported.
func TestLocate(t *testing.T) {
	t.Parallel()
	name := write(t, "creel.toml", "[[source]]\nname = \"gen\"\nprovider = 1\n[destination.app]\nurl = \"x\"\n")
	_, file, found := Load(name, lookup())
	if len(found) != 3 {
		t.Fatalf("want two faults and a warning, got:\n%s", found)
	}
	later := Problems{
		{Path: "destination.app.url", Message: "the URL can not be dialled"},
		{Path: "destination.app.secret", Message: "is missing", Warning: true},
		{Path: "source[0].secrets", Message: "none"},
		{Path: "source[0].provider.x", Message: "follows"},
	}
	want := Problems{
		{File: name, Line: 1, Path: "source[0].secrets", Message: "none"},
		{File: name, Line: 4, Path: "destination.app.secret", Message: "is missing", Warning: true},
	}
	if diff := cmp.Diff(want, file.Locate(later)); diff != "" {
		t.Error(diff)
	}
	again := append(slices.Clone(later), Problem{Path: found[0].Path, Message: found[0].Message, Hint: found[0].Hint})
	both := append(slices.Clone(found), want...).Sorted()
	if diff := cmp.Diff(both, file.Locate(append(slices.Clone(found), again...))); diff != "" {
		t.Errorf("with those of Load: %s", diff)
	}
}

func TestLoadWithoutFile(t *testing.T) {
	t.Parallel()
	cfg, _, problems := Load("", lookup())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(Default(), cfg); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{
		filepath.Join(t.TempDir(), "creel.toml"): "there is no such file",
		t.TempDir():                              "not a regular file",
		write(t, "large.toml", strings.Repeat("#\n", maxFile/2+1)): "larger than 1MiB",
		write(t, "utf16.toml", "\xff\xfea\x00=\x001\x00"):          "not TOML",
	} {
		cfg, file, problems := Load(name, lookup())
		if cfg == nil || file == nil || len(problems) != 1 || !has(problems.Faults(), name, want) {
			t.Errorf("%s: want %q, got %v", name, want, problems)
		}
	}
}

func TestExposedFile(t *testing.T) {
	t.Parallel()
	const literal = "[[source]]\nname = \"gen\"\nprovider = \"x\"\nsecrets = [\"0123456789abcdef\"]\n"
	for _, c := range []struct {
		text string
		mode os.FileMode
		warn bool
	}{
		{literal, 0o644, true}, {literal, 0o640, true}, {literal, 0o600, false},
		{strings.Replace(literal, "0123456789abcdef", "env:STRIPE", 1), 0o644, false},
	} {
		name := write(t, "creel.toml", c.text)
		if err := os.Chmod(name, c.mode); err != nil {
			t.Fatal(err)
		}
		_, _, problems := Load(name, testEnvironment())
		if got := has(problems.Warnings(), "other users can read", "source[0].secrets[0]", "chmod 600"); got != c.warn {
			t.Errorf("mode %o: warned %v, want %v: %s", c.mode, got, c.warn, problems)
		}
	}
}

// A secret's file that others can read or change is told of, where its mode is
// its owner's to set.
func TestExposedSecretFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode       os.FileMode
		credential bool
		warn       bool
	}{
		{0o600, false, false}, {0o400, false, false}, {0o640, false, false},
		{0o644, false, true}, {0o604, false, true}, {0o602, false, true}, {0o660, false, true}, {0o444, false, true},
		{0o444, true, false},
	} {
		secret := write(t, "sec", "0123456789abcdef")
		if err := os.Chmod(secret, c.mode); err != nil {
			t.Fatal(err)
		}
		name := write(t, "creel.toml", "[[source]]\nname = \"gen\"\nprovider = \"x\"\nsecrets = [\"file:"+secret+"\"]\n")
		env := func(variable string) (string, bool) {
			return filepath.Dir(secret), c.credential && variable == "CREDENTIALS_DIRECTORY"
		}
		_, _, problems := Load(name, env)
		if got := has(problems.Warnings(), "others than its owner", "source[0].secrets[0]", "creel.toml:4", "chmod 600 "+secret, fmt.Sprintf("%04o", c.mode)); got != c.warn {
			t.Errorf("mode %o: warned %v, want %v: %s", c.mode, got, c.warn, problems)
		}
	}
}

func FuzzLoad(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.toml")
	for _, name := range append(names, "../config.example.toml") {
		text, err := os.ReadFile(name)
		if err == nil {
			f.Add(text)
		}
	}
	f.Add([]byte("a = [[[[{b = '''x\n'''}]]]]\n"))
	f.Add([]byte("[[source]]\n[source.verify]\nlate = \"5m\"\n[[source]]\n"))
	f.Add([]byte("\ufefflisten = \"x\"\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<14 {
			return
		}
		cfg, problems := Parse("fuzz.toml", text, lookup())
		if cfg == nil {
			t.Fatal("no configuration")
		}
		last := bytes.Count(text, []byte("\n")) + 1
		for _, p := range problems {
			if p.Line < 0 || p.Line > last || p.Message == "" {
				t.Errorf("problem out of place: %+v", p)
			}
		}
	})
}
