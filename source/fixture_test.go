package source

import (
	"os"
	"path/filepath"
	"testing"

	"creel/config"
)

// noEnv is an environment without variables.
func noEnv(string) (string, bool) { return "", false }

// testScheme reads a scheme of the tests with the decoder that reads an
// owner's file.
func testScheme(t testing.TB, name string) *config.Scheme {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "schemes", name+".toml"))
	if err != nil {
		t.Fatal(err)
	}
	return schemeOfText(t, string(data))
}

func schemeOfText(t testing.TB, text string) *config.Scheme {
	t.Helper()
	var s config.Scheme
	if err := config.DecodeStrict([]byte(text), &s).Err(); err != nil {
		t.Fatal(err)
	}
	return &s
}

func mustCompile(t testing.TB, cfg config.Source) *Source {
	t.Helper()
	s, problems := Compile(cfg, "source[0]", noEnv)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return s
}
