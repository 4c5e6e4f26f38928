package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// resolvePaths makes the relative paths of a file start at its folder.
func (c *Config) resolvePaths(folder string) {
	if c.Database != "" && !filepath.IsAbs(c.Database) {
		c.Database = filepath.Join(folder, c.Database)
	}
	if c.SQL.Migrations != "" && !filepath.IsAbs(c.SQL.Migrations) {
		c.SQL.Migrations = filepath.Join(folder, c.SQL.Migrations)
	}
	for name, d := range c.Destinations {
		for _, place := range []*string{&d.Folder, &d.WorkingFolder} {
			if *place != "" && !filepath.IsAbs(*place) {
				*place = filepath.Join(folder, *place)
			}
		}
		c.Destinations[name] = d
	}
	c.eachSecret(func(_ string, s *Secret) { *s = s.under(folder) })
	for _, s := range c.Sources {
		for name, value := range s.Settings { // these may be references too
			s.Settings[name] = NewSecret(value).under(folder).text()
		}
	}
}

// checkSecrets resolves every secret once, so that a missing one is told at
// the start.
func checkSecrets(cfg *Config, env Environment) Problems {
	var problems Problems
	cfg.eachSecret(func(at string, s *Secret) {
		if _, err := s.Resolve(env); err != nil && !cfg.awaits(at, err) {
			problem := Problem{Path: at, Message: err.Error(), Unresolved: !s.Literal()}
			var why *SecretError
			if errors.As(err, &why) {
				problem.Hint = why.Hint
			}
			problems = append(problems, problem)
		}
		if s.Literal() && (publicHeader(at) || at == "admin.password" && strings.HasPrefix(s.text(), "$2")) {
			return // a plain header, or a hash
		}
		for _, text := range s.Warnings(env) {
			problems = append(problems, Problem{Path: at, Message: text, Warning: true})
		}
		if name, mode, open := s.exposed(env); open {
			problems = append(problems, Problem{Path: at, Warning: true, Hint: "chmod 600 " + name,
				Message: fmt.Sprintf("others than its owner can read or change the secret's file %s (mode %04o)", name, mode)})
		}
	})
	return problems
}

// awaits tells whether a secret that can not be read is still to come: it is a
// source's, which waits for it, and its file is not there yet.
func (c *Config) awaits(at string, err error) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for i := range c.Sources {
		if c.Sources[i].AwaitSecret && strings.HasPrefix(at, Item("source", i)+".secrets[") {
			return true
		}
	}
	return false
}

// publicHeader tells whether a key path is that of a header, of a setting or of
// a command's variable, whose name says nothing of a secret: a literal is the normal thing
// there.
func publicHeader(at string) bool {
	header, found := "", false
	for _, table := range []string{".headers.", ".settings.", ".env."} {
		if _, name, ok := strings.Cut(at, table); ok && !found {
			header, found = name, true
		}
	}
	if !found {
		return false
	}
	header = strings.ToLower(header)
	return !slices.ContainsFunc([]string{"auth", "key", "token", "secret", "cookie", "password", "signature"},
		func(word string) bool { return strings.Contains(header, word) })
}

// FromStart lists the references whose values a running server does not see
// change: "env:NAME" and "credential:NAME", each once.
func (c *Config) FromStart() []string {
	var list []string
	c.eachSecret(func(_ string, s *Secret) {
		if scheme, name := s.split(); scheme == "env" || scheme == "credential" {
			list = append(list, scheme+":"+name)
		}
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// eachSecret visits every secret that is set, with its key path. What visit
// writes is kept.
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
