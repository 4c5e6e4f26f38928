package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"creel/config"
)

func TestPlaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		env        map[string]string
		placed     bool
		database   string // within the folder; "" where it is not certain
	}{
		{"sound", "database = 'a.db'\n", nil, true, "a.db"},
		{"fault elsewhere", "database = 'a.db'\n[[source]]\nnmae = 'x'\n", nil, true, "a.db"},
		{"fault elsewhere, by default", "[[source]]\nnmae = 'x'\n", nil, true, "creel.db"},
		{"unknown key at the top", "db = 'a.db'\n", nil, false, ""},
		{"misspelt", "databse = 'a.db'\n", nil, false, ""},
		{"in a table", "[admin]\ndatabase = 'a.db'\n", nil, false, ""},
		{"in a list of tables", "[[source]]\ndatabase = 'a.db'\n", nil, false, ""},
		{"of another type", "database = 7\n", nil, false, ""},
		{"from the environment", "databse = 'a.db'\n", map[string]string{"CREEL_DATABASE": "/b.db"}, true, "/b.db"},
		{"no TOML below", "database = 'a.db' # here\n[[source]\n", nil, true, "a.db"},
		{"no TOML below, in the head", "database = 'a.db'\nlisten = 127.0.0.1\n", nil, true, "a.db"},
		{"no TOML above", "listen = 127.0.0.1\ndatabase = 'a.db'\n", nil, false, ""},
		{"no TOML itself", "database = 'a.db\n", nil, false, ""},
		{"no TOML, twice", "database = 'a.db'\ndatabase = 'b.db'\n", nil, false, ""},
		{"no TOML, by default", "[[source]\n", nil, false, ""},
		{"no TOML, in a table", "[admin]\ndatabase = 'a.db'\nx\n", nil, false, ""},
		{"no TOML, from the environment", "x\n", map[string]string{"CREEL_DATABASE": "/b.db"}, true, "/b.db"},
		{"no TOML, in a text", "x = '''\ndatabase = 'a.db'\n'''\n[y\n", nil, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			name := filepath.Join(folder, "creel.toml")
			if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, file, _ := config.Load(name, func(name string) (string, bool) { value, ok := c.env[name]; return value, ok })
			want := c.database
			if want != "" && !filepath.IsAbs(want) {
				want = filepath.Join(folder, want)
			}
			if file.Placed() != c.placed || c.placed && cfg.Database != want {
				t.Errorf("placed %v at %s, want %v at %s", file.Placed(), cfg.Database, c.placed, want)
			}
		})
	}
}
