package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
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
	bad   map[string]bool   // key paths whose value could not be read
}

// Load reads a configuration file, applies the CREEL_ variables of the
// environment over it and checks all that can be checked without knowing what
// a source or a rule means. An empty name is no file: the defaults and the
// environment count. The configuration and the file are never nil, so that
// later steps can report their problems beside these; the configuration may
// be used only where Problems.Err is nil.
func Load(name string, env Environment) (*Config, *File, Problems) {
	cfg := Default()
	file := &File{Name: name, index: lines{}, from: map[string]string{}, bad: map[string]bool{}}
	var problems Problems
	if name != "" {
		found, read := file.read(cfg)
		if !read {
			return cfg, file, file.Locate(found) // more would be noise
		}
		problems = append(problems, found...)
		cfg.resolvePaths(file.Folder)
	}
	problems = append(problems, file.override(cfg, env)...)
	for _, p := range problems {
		file.bad[p.Path] = true
	}
	problems = append(problems, validate(cfg, file.bad)...)
	problems = append(problems, checkSecrets(cfg, env)...)
	problems = append(problems, file.exposed(cfg)...)
	return cfg, file, file.Locate(problems)
}

// Locate fills in the file and line of problems that have none by their key
// paths, and sorts them. Compile steps report without lines; this adds them.
func (f *File) Locate(problems Problems) Problems {
	out := make(Problems, len(problems))
	for i, p := range problems {
		if variable, ok := f.from[p.Path]; ok && p.File == "" && p.Line == 0 {
			p.Path = variable
		} else if p.File == "" && f.Name != "" && !isVariable(p.Path) {
			p.File = f.Name
			if p.Line == 0 {
				p.Line = f.Line(p.Path)
			}
		}
		out[i] = p
	}
	return out.Sorted()
}

// Line returns the line on which a key, or the nearest table around it,
// stands; 0 where none does.
func (f *File) Line(path string) int { return f.index.of(path) }

// read decodes the file over the defaults. It returns false where there is
// nothing to decode: no file, or no TOML.
func (f *File) read(cfg *Config) (Problems, bool) {
	absolute, err := filepath.Abs(f.Name)
	if err != nil {
		return Problems{{Message: "the file's folder is unknown: " + err.Error()}}, false
	}
	f.Folder = filepath.Dir(absolute)
	data, err := readRegular(f.Name, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Problems{{Message: "there is no such file", Hint: "name one with -c, or start from config.example.toml"}}, false
	case errors.Is(err, fs.ErrPermission):
		return Problems{{Message: "the file may not be read", Hint: fmt.Sprintf("creel runs as user id %d; give it the right to read the file", os.Getuid())}}, false
	case err != nil:
		return Problems{{Message: "the file can not be read: " + err.Error()}}, false
	}
	problems, index, ok := decodeText(data, cfg)
	f.index = index
	return problems, ok
}

// exposed warns where others on the machine can read secrets that stand in
// the file itself.
func (f *File) exposed(cfg *Config) Problems {
	if f.Name == "" {
		return nil
	}
	about, err := os.Stat(f.Name)
	if err != nil || about.Mode().Perm()&0o044 == 0 {
		return nil
	}
	var literal string
	cfg.eachSecret(func(path string, s *Secret) {
		if literal == "" && s.Literal() && f.from[path] == "" && !publicHeader(path) {
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

// resolvePaths makes the relative paths of a file start at its folder.
func (c *Config) resolvePaths(folder string) {
	if c.Database != "" && !filepath.IsAbs(c.Database) {
		c.Database = filepath.Join(folder, c.Database)
	}
	c.eachSecret(func(_ string, s *Secret) { *s = s.under(folder) })
}

// eachSecret visits every secret of the configuration with its key path. What
// visit writes is kept.
func (c *Config) eachSecret(visit func(path string, s *Secret)) {
	walkSecrets("", reflect.ValueOf(c).Elem(), visit)
}

func walkSecrets(path string, v reflect.Value, visit func(string, *Secret)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walkSecrets(path, v.Elem(), visit)
		}
	case reflect.Struct:
		if s, ok := v.Addr().Interface().(*Secret); ok {
			if !s.IsZero() {
				visit(path, s)
			}
			return
		}
		fields := fieldsOf(v.Type())
		for _, key := range sortedKeys(fields) {
			walkSecrets(Join(path, key), v.FieldByIndex(fields[key].Index), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkSecrets(Item(path, i), v.Index(i), visit)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(key))
			walkSecrets(Join(path, key.String()), element, visit)
			v.SetMapIndex(key, element)
		}
	}
}
