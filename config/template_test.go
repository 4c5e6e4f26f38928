package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The texts of a mail may stand in files, beside the configuration or
// anywhere.
func TestMailTemplatesInFiles(t *testing.T) {
	t.Parallel()
	const head = `
[smtp]
host = "127.0.0.1:25"
from = "creel@example.com"
[[source]]
name = "shop"
provider = "stripe"
secrets = ["0123456789abcdef"]
[[rule]]
name = "mail"
match = { source = "shop" }
[rule.email]
to = "a@example.com"
subject = "s"
`
	for name, c := range map[string]struct{ keys, want string }{
		"both":          {`text_file = "mail/a.txt"` + "\n" + `html_file = "ABSOLUTE/mail/a.html"`, ""},
		"beside a text": {`text_file = "mail/a.txt"` + "\n" + `text = "t"`, "text_file: stands beside text"},
		"missing":       {`text_file = "mail/b.txt"`, "text_file: the file can not be read"},
		"a folder":      {`text_file = "mail"`, "is not a regular file"},
		"empty":         {`html_file = "mail/empty"`, "html_file: \"FOLDER/mail/empty\" is empty"},
		"not UTF-8":     {`text_file = "mail/latin1"`, "is not UTF-8"},
	} {
		folder := t.TempDir()
		file := filepath.Join(folder, "creel.toml")
		for path, text := range map[string]string{"creel.toml": head + strings.ReplaceAll(c.keys, "ABSOLUTE", folder), "mail/a.txt": "Hello {body.name}",
			"mail/a.html": "<p>Hello {body.name}</p>", "mail/empty": "", "mail/latin1": "Gr\xfc\xdfe"} {
			if err := os.MkdirAll(filepath.Join(folder, "mail"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, path), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cfg, _, problems := Load(file, lookup())
		faults := problems.Faults()
		if c.want == "" {
			if len(faults) > 0 || cfg.Rules[0].Email.Text != "Hello {body.name}" || cfg.Rules[0].Email.HTML != "<p>Hello {body.name}</p>" {
				t.Errorf("%s: %v, %+v", name, faults, cfg.Rules)
			}
			continue
		}
		if want := strings.ReplaceAll(c.want, "FOLDER", folder); len(faults) != 1 || !strings.Contains(faults[0].String(), want) || faults[0].Line == 0 {
			t.Errorf("%s: %v", name, faults)
		}
	}
}
