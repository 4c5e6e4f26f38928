package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// databaseKey is the one key that a command needs which only looks at what is
// stored, or asks the server beside it.
const databaseKey = "database"

// Placed tells whether it is certain where the database is, whatever else is
// wrong with the configuration: another database would be another server.
func (f *File) Placed() bool { return f.placed }

// places judges that once everything has been read. Where nothing names the
// database it is the default one, unless a fault may hide the name.
func (f *File) places(problems Problems) bool {
	named := f.index[databaseKey] > 0 || f.from[databaseKey] != ""
	return !slices.ContainsFunc(problems.Faults(), func(p Problem) bool {
		switch {
		case p.Unresolved:
			return false
		case aboutDatabase(p):
			return true
		case named:
			return false
		}
		last := p.Path[strings.LastIndexByte(p.Path, '.')+1:]
		return last == p.Path && !strings.Contains(p.Path, "[") || Nearest(last, []string{databaseKey}) != ""
	})
}

func aboutDatabase(p Problem) bool {
	variable := Prefix + strings.ToUpper(databaseKey)
	return p.Path == databaseKey || p.Path == variable || p.Path == variable+fileSuffix
}

// rescue takes the database out of a text that is no TOML: from the
// environment, or from above the line where the text breaks off.
func (f *File) rescue(data []byte, fault Problems, env Environment) *Config {
	cfg, line := Default(), 0
	for _, p := range fault {
		line = max(line, p.Line)
	}
	if path, ok := databaseAbove(string(data), line); ok {
		cfg.Database, f.placed = path, true
	}
	if f.Name != "" {
		cfg.resolvePaths(f.Folder)
	}
	found := f.override(cfg, env)
	f.placed = (f.placed || f.from[databaseKey] != "") && !slices.ContainsFunc(found.Faults(), aboutDatabase)
	if !f.placed {
		return Default()
	}
	where := cfg.Database
	cfg = Default()
	cfg.Database = where
	return cfg
}

var databaseLine = regexp.MustCompile(`(?m)^[ \t]*["']?database["']?[ \t]*=`)

// databaseAbove reads the key from the head of a text: above the first table
// and above the line, from 1, that is at fault. Two such keys are none.
func databaseAbove(text string, fault int) (string, bool) {
	text = strings.TrimPrefix(text, "\ufeff")
	if len(databaseLine.FindAllStringIndex(text, 2)) != 1 {
		return "", false
	}
	all := strings.Split(text, "\n")
	if fault > 0 && fault <= len(all) {
		all = all[:fault-1]
	}
	if table := slices.IndexFunc(all, func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "[") }); table >= 0 {
		all = all[:table]
	}
	var head struct{ Database string }
	if _, err := toml.Decode(strings.Join(all, "\n"), &head); err != nil {
		return "", false
	}
	return head.Database, head.Database != ""
}
