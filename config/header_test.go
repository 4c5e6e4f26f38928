package config

import (
	"fmt"
	"strings"
	"testing"
)

// A header of a table without its bracket is told as that, on its own line.
func TestATableHeaderThatIsNotClosed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[admin]\n\n[destination.app\nurl = \"http://x\"\n":               `:3: the file is not TOML: the table header [destination.app has no closing bracket (write [destination.app])`,
		"[[source\nname = \"x\"\n":                                        `:1: the file is not TOML: the table header [[source has no closing bracket (write [[source]])`,
		"[[source]\nname = \"x\"\n":                                       `:1: the file is not TOML: the table header [[source] is not closed as it is opened (write [[source]])`,
		"[admin]\n\n[source]\nname = \"x\"\n\n[[source]]\nname = \"y\"\n": `:3: the file is not TOML: [source] is one table, and there are several of that name (write [[source]] in line 3)`,
		"[[source]]\nname = \"x\"\n[source]\nname = \"y\"\n":              `(write [[source]] in line 3)`,
		"[ rule ] # one\nname = \"x\"\n[rule]\nname = \"y\"\n":            `(write [[rule]] in line 1)`,
		"[admin]\n[admin]\n":                                              `Key 'admin' has already been defined`,
		"[rule.fetch]\n[[rule]]\n":                                        `cannot be used as an array`,
		"[admin]\nlisten = \"a\n[destination.app]\n":                      `not TOML at column`,
		"[admin]\n[destination.\"a b\"  # mine\nurl = \"secret\"\n":       `:2: the file is not TOML: the table header [destination."a b" has no closing bracket`,
	} {
		problems := DecodeStrict([]byte(text), Default())
		if len(problems) != 1 {
			t.Errorf("%q: %v", text, problems)
			continue
		}
		p := problems[0]
		if got := fmt.Sprintf(":%d: %s (%s)", p.Line, p.Message, p.Hint); !strings.Contains(got, want) {
			t.Errorf("%q: %s", text, got)
		}
	}
}
