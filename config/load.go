package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// File is the text that a configuration came from: it knows where its keys
// stand.
type File struct {
	Name string // as it was given; "" where there is no file
	// Folder is the absolute path of the file's folder: relative paths inside
	// the file start there.
	Folder string

	index lines
	from  map[string]string // key path to the environment variable that set it
	// told has the faults of each key path that Load has reported.
	told map[string][]string
	// placed is what Placed tells.
	placed bool
}

// Load reads a configuration file, applies the CREEL_ variables of the
// environment over it and checks all that can be checked without knowing what
// a source or a rule means. An empty name is no file: the defaults and the
// environment count. The configuration and the file are never nil, so that
// later steps can report their problems beside these; the configuration may
// be used only where Problems.Err is nil. Its Database alone may be used where
// File.Placed says so.
func Load(name string, env Environment) (*Config, *File, Problems) {
	file := newFile(name)
	if name == "" {
		cfg, problems := file.load(nil, env)
		return cfg, file, problems
	}
	data, problems := file.read()
	if problems != nil {
		return Default(), file, file.Locate(problems)
	}
	cfg, problems := file.load(data, env)
	return cfg, file, append(problems, file.Locate(file.exposed(cfg))...).Sorted()
}

// Parse is Load for a text that is at hand. name stands in problems, and
// relative paths start at its folder.
func Parse(name string, data []byte, env Environment) (*Config, Problems) {
	return newFile(name).load(data, env)
}

func newFile(name string) *File {
	folder := filepath.Dir(name)
	if absolute, err := filepath.Abs(folder); err == nil {
		folder = absolute
	}
	return &File{Name: name, Folder: folder, index: lines{}, from: map[string]string{}, told: map[string][]string{}}
}

// load decodes the text over the defaults, then the environment over the
// text, then checks what came of it.
func (f *File) load(data []byte, env Environment) (*Config, Problems) {
	cfg := Default()
	problems, index, ok := decodeText(data, cfg)
	f.index = index
	if !ok {
		return f.rescue(data, problems, env), f.Locate(problems) // more would be noise
	}
	for name, retry := range cfg.Retries {
		retry.fillDefaults()
		cfg.Retries[name] = retry
	}
	for name, destination := range cfg.Destinations {
		destination.fillDefaults()
		cfg.Destinations[name] = destination
	}
	if f.Name != "" {
		cfg.resolvePaths(f.Folder)
	}
	problems = append(problems, f.override(cfg, env)...)
	problems = append(problems, cfg.readTemplates(f.Folder)...)
	bad := map[string]bool{}
	for _, p := range problems {
		bad[p.Path] = true
	}
	problems = append(problems, validate(cfg, bad)...)
	problems = append(problems, checkSecrets(cfg, env)...)
	if f.Name != "" && cfg.Sources == nil && problems.Err() == nil {
		problems = append(problems, Problem{Warning: true, Message: "there is no source: nothing can be received", Hint: "write [[source]] with a name, as in config.example.toml"})
	}
	f.placed = f.places(problems)
	located := f.Locate(problems)
	for _, p := range problems.Faults() {
		f.told[p.Path] = append(f.told[p.Path], p.Message)
	}
	return cfg, located
}

// Locate fills in the file and line of problems that have none by their key
// paths, and sorts them. Steps that give a configuration its meaning report
// without lines; this adds them, and drops what they say about values that
// Load has found faulty already. It may be given the problems of Load too.
func (f *File) Locate(problems Problems) Problems {
	var out Problems
	for _, p := range problems {
		if p.File == "" && p.Level() == LevelError && f.follows(p) {
			continue
		}
		variable := f.variableOf(p.Path)
		switch {
		case p.File != "" || isVariable(p.Path):
		case variable != "":
			p.Path, p.Line = variable, 0
		case f.Name != "":
			p.File = f.Name
			if p.Line == 0 {
				p.Line = f.Line(p.Path)
			}
		}
		out = append(out, p)
	}
	return out.Sorted()
}

// Line returns the line on which a key, or the nearest table around it,
// stands; 0 where none does.
func (f *File) Line(path string) int { return f.index.of(path) }

// follows tells whether a problem only follows from one that Load has
// reported: about the same value, a table around it, or an element of it.
func (f *File) follows(p Problem) bool {
	if told := f.told[p.Path]; len(told) > 0 {
		return !slices.Contains(told, p.Message)
	}
	for at := parent(p.Path); at != ""; at = parent(at) {
		if len(f.told[at]) > 0 {
			return true
		}
	}
	for at := range f.told {
		if strings.HasPrefix(at, p.Path+"[") {
			return true
		}
	}
	return false
}

// variableOf returns the environment variable that set a key, or the list
// that an element stands in.
func (f *File) variableOf(path string) string {
	for ; path != ""; path = parent(path) {
		if variable, ok := f.from[path]; ok {
			return variable
		}
	}
	return ""
}

func (f *File) read() ([]byte, Problems) {
	data, err := readRegular(f.Name, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Problems{{Message: "there is no such file", Hint: "name one with -c, or start from config.example.toml"}}
	case errors.Is(err, fs.ErrPermission):
		return nil, Problems{{Message: "the file may not be read", Hint: fmt.Sprintf("creel runs as user id %d; give it the right to read the file", os.Getuid())}}
	case err != nil:
		return nil, Problems{{Message: "the file can not be read: " + err.Error()}}
	}
	return data, nil
}

// exposed warns where others on the machine can read secrets that stand in
// the file itself.
func (f *File) exposed(cfg *Config) Problems {
	about, err := os.Stat(f.Name)
	if err != nil || about.Mode().Perm()&0o044 == 0 {
		return nil
	}
	var literal string
	cfg.eachSecret(func(path string, s *Secret) {
		if literal == "" && s.Literal() && !publicHeader(path) {
			literal = path
		}
	})
	if literal == "" {
		return nil
	}
	return Problems{{
		Warning: true,
		Message: fmt.Sprintf("other users can read this file (mode %04o) and secrets stand in it, such as %s", about.Mode().Perm(), literal),
		Hint:    "chmod 600 " + f.Name,
	}}
}
