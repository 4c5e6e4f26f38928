package config

import (
	"encoding"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const exampleFile = "../config.example.toml"

var switchedOff = regexp.MustCompile(`(?m)^#([^# \n])`)

func readExample(t *testing.T) (asShipped, allOn string) {
	t.Helper()
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), switchedOff.ReplaceAllString(string(text), "$1")
}

// loadExample loads the text of the example where the secrets that it names
// exist.
func loadExample(t *testing.T, text string) (*Config, Problems) {
	t.Helper()
	const secret = "0123456789abcdef"
	folder := t.TempDir()
	for _, name := range []string{"creel.toml", "admin-password", "mail/welcome.txt", "mail/welcome.html", "secrets/github", "credentials/shop"} {
		content := secret + "\n"
		if name == "creel.toml" {
			content = text
		}
		full := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, _, problems := Load(filepath.Join(folder, "creel.toml"), lookup(
		"STRIPE_WEBHOOK_SECRET", secret, "APP_WEBHOOK_SECRET", secret, "APP_AUTHORIZATION", secret, "PRINTER_TOKEN", secret, "SMTP_PASSWORD", secret, "STRIPE_API_KEY", secret, "STRIPE_READ_KEY", secret, "CHAT_TOKEN", secret,
		"CREDENTIALS_DIRECTORY", filepath.Join(folder, "credentials")))
	return cfg, problems
}

// A newcomer copies the file as it is; an owner switches on what is in it.
// Both load, without even a warning.
func TestExampleLoads(t *testing.T) {
	t.Parallel()
	asShipped, allOn := readExample(t)
	for name, text := range map[string]string{"as shipped": asShipped, "all switched on": allOn} {
		if _, problems := loadExample(t, text); len(problems) > 0 {
			t.Errorf("%s:\n%s", name, problems)
		}
	}
}

// Every key of the structs is in the example and the other way round.
func TestExampleNamesEveryKey(t *testing.T) {
	t.Parallel()
	_, allOn := readExample(t)
	var tree map[string]any
	if _, err := toml.Decode(allOn, &tree); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	keysOfTree("", tree, found)
	known := map[string]bool{}
	keysOfType("", reflect.TypeFor[Config](), known)
	for _, path := range sortedKeys(known) {
		if !found[path] {
			t.Errorf("config.example.toml says nothing of %s", path)
		}
	}
	if len(known) < 80 {
		t.Errorf("only %d keys: the walk is broken", len(known))
	}
}

// keysOfTree lists the keys of a decoded file, without indices.
func keysOfTree(path string, value any, found map[string]bool) {
	found[path] = true
	switch v := value.(type) {
	case map[string]any:
		for key, element := range v {
			keysOfTree(strings.TrimPrefix(path+"."+key, "."), element, found)
			if path == "destination" || path == "retry" {
				keysOfTree(path+".NAME", element, found)
			}
		}
	case []map[string]any:
		for _, element := range v {
			keysOfTree(path, element, found)
		}
	}
}

// keysOfType lists the keys that a type can take.
func keysOfType(path string, of reflect.Type, known map[string]bool) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	text := reflect.PointerTo(of).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	switch {
	case of.Kind() == reflect.Struct && !text:
		for key, field := range fieldsOf(of) {
			keysOfType(strings.TrimPrefix(path+"."+key, "."), field.Type, known)
		}
	case of.Kind() == reflect.Map && of.Elem().Kind() == reflect.Struct && of.Elem() != reflect.TypeFor[Secret]():
		keysOfType(path+".NAME", of.Elem(), known)
	default:
		known[path] = true
	}
}

// What the example shows is the default, where there is one.
func TestExampleShowsDefaults(t *testing.T) {
	t.Parallel()
	_, allOn := readExample(t)
	cfg, _ := loadExample(t, allOn)
	noDefault := func(names ...string) cmp.Option {
		return cmp.FilterPath(func(p cmp.Path) bool {
			field, ok := p.Last().(cmp.StructField)
			return ok && slices.Contains(names, field.Name())
		}, cmp.Ignore())
	}
	want := Default()
	want.Database, want.SQL.Migrations = cfg.Database, cfg.SQL.Migrations // absolute once they are loaded
	if filepath.Base(cfg.Database) != "creel.db" {
		t.Errorf("database: %s", cfg.Database)
	}
	if diff := cmp.Diff(want, cfg, noDefault("PublicURL", "TrustedProxies", "Password", "Host", "From", "Username", "Hello", "Rate", "GiveUpAfter", "To", "Heartbeat", "Sources", "Rules", "Destinations", "Retries")); diff != "" {
		t.Errorf("the frame (-default +example):\n%s", diff)
	}
	// max_body and body_window stand there with what holds where no preset
	// says otherwise.
	if diff := cmp.Diff(DefaultSource(), cfg.Sources[0], noDefault("Name", "Provider", "Secrets", "Forward", "PublicURL", "Ignore",
		"MaxBody", "BodyWindow", "Retention", "Signals", "Accounts", "Index", "Redact", "RedactStored", "Settings", "Verify", "Reconcile")); diff != "" {
		t.Errorf("a source (-default +example):\n%s", diff)
	}
	if diff := cmp.Diff(DefaultDestination(), cfg.Destinations["app"], noDefault("URL", "Secret", "Retry4xx", "Rate", "PassHeaders", "Headers", "Success", "GiveUpAfter", "MaxBody", "BodyURLTTL")); diff != "" {
		t.Errorf("a destination (-default +example):\n%s", diff)
	}
	var growing Retry
	growing.fillDefaults()
	if diff := cmp.Diff(growing, cfg.Retries["growing"], noDefault("First", "Attempts"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("a retry policy (-default +example):\n%s", diff)
	}
}

func TestExampleIsTidy(t *testing.T) {
	t.Parallel()
	asShipped, _ := readExample(t)
	previous := ""
	for i, line := range strings.Split(asShipped, "\n") {
		if len(line) > 80 {
			t.Errorf("line %d is longer than 80", i+1)
		}
		if strings.HasPrefix(line, "\t") || strings.HasSuffix(line, " ") {
			t.Errorf("line %d has a tab or a blank at its end", i+1)
		}
		previous = line
	}
	if previous != "" {
		t.Error("no line end at the end")
	}
}
