package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Prefix starts the name of every environment variable that sets a key.
const Prefix = "CREEL_"

// fileSuffix ends the name of a variable that names a file with the value.
const fileSuffix = "_FILE"

// Variables lists the environment variables that set keys of the frame, with
// their key paths: CREEL_LISTEN is listen, CREEL_ADMIN_PASSWORD is
// admin.password. Each may also be given as NAME_FILE, which names a file
// that holds the value. Sources, rules and destinations have none.
func Variables() map[string]string {
	out := map[string]string{}
	eachVariable(reflect.ValueOf(Default()).Elem(), func(v variable) { out[v.name] = v.path })
	return out
}

// variable is one key of the frame that the environment may set.
type variable struct {
	name  string
	path  string
	into  reflect.Value
	rules reflect.StructTag
}

func eachVariable(cfg reflect.Value, visit func(variable)) {
	var table func(path string, of reflect.Value)
	table = func(path string, of reflect.Value) {
		fields := fieldsOf(of.Type())
		for _, key := range sortedKeys(fields) {
			into := of.FieldByIndex(fields[key].Index)
			at := Join(path, key)
			switch {
			case into.Kind() == reflect.Map, into.Kind() == reflect.Slice && into.Type().Elem().Kind() == reflect.Struct:
			case into.Kind() == reflect.Struct && !isText(into.Type()):
				table(at, into)
			default:
				name := Prefix + strings.ToUpper(strings.ReplaceAll(at, ".", "_"))
				visit(variable{name: name, path: at, into: into, rules: fields[key].Tag})
			}
		}
	}
	table("", cfg)
}

// override applies the environment over the file.
func (f *File) override(cfg *Config, env Environment) Problems {
	var problems Problems
	eachVariable(reflect.ValueOf(cfg).Elem(), func(v variable) {
		value, set := env(v.name)
		name, fromFile := env(v.name + fileSuffix)
		switch {
		case set && fromFile:
			problems = append(problems, Problem{Path: v.name, Message: "is set, and so is " + v.name + fileSuffix, Hint: "unset one of them"})
		case set && value == "":
			problems = append(problems, Problem{Path: v.name, Message: "is set and empty", Warning: !isSecret(v), Hint: "it does not count; unset it or give it a value"})
		case set:
			f.from[v.path] = v.name
			problems = append(problems, v.set(value, "env:"+v.name)...)
		case fromFile:
			f.from[v.path] = v.name + fileSuffix
			problems = append(problems, v.setFromFile(name)...)
		}
	})
	return problems
}

// setFromFile reads the value from a file, less one final line end.
func (v variable) setFromFile(name string) Problems {
	absolute, err := filepath.Abs(name)
	if err == nil && isSecret(v) {
		return v.set("file:"+absolute, "file:"+absolute)
	}
	var data []byte
	if err == nil {
		data, err = readRegular(name, maxSecretFile)
	}
	if err != nil {
		return Problems{{Path: v.name + fileSuffix, Message: "the file can not be read: " + err.Error()}}
	}
	return v.set(string(trimLineEnd(data)), "")
}

// set decodes the text of a variable into its key. A secret is kept as the
// reference to the variable, or as the reference that the variable holds.
func (v variable) set(text, reference string) Problems {
	d := &decoder{root: reflect.TypeFor[Config]()}
	d.value(v.path, v.tree(text, reference), v.into, v.rules)
	return d.problems
}

// tree turns a text into the TOML value that the key wants.
func (v variable) tree(text, reference string) any {
	switch {
	case isSecret(v):
		if scheme, _ := NewSecret(text).split(); scheme != "" {
			return text
		}
		return reference
	case isText(v.into.Type()):
		return text
	case v.into.Kind() == reflect.Slice:
		list := []any{}
		for element := range strings.SplitSeq(text, ",") {
			list = append(list, strings.TrimSpace(element))
		}
		return list
	case v.into.CanInt():
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case v.into.Kind() == reflect.Bool:
		if truth, err := strconv.ParseBool(text); err == nil {
			return truth
		}
	case v.into.CanFloat():
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n
		}
	}
	return text
}

func isSecret(v variable) bool {
	_, ok := v.into.Addr().Interface().(*Secret)
	return ok
}

// UnknownVariables warns about CREEL_ variables that nothing reads. environ
// is as os.Environ gives it; also lists those that a command reads itself. A
// variable that a secret names is known.
func (c *Config) UnknownVariables(environ []string, also ...string) Problems {
	known := slices.Clone(also)
	for name := range Variables() {
		known = append(known, name, name+fileSuffix)
	}
	c.eachSecret(func(_ string, s *Secret) { known = append(known, s.variable()) })
	for _, s := range c.Sources {
		for _, value := range s.Settings {
			known = append(known, NewSecret(value).variable())
		}
	}
	slices.Sort(known)
	var problems Problems
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, Prefix) || slices.Contains(known, name) || fromOrchestrator(name) {
			continue
		}
		hint := "CREEL_ variables set the keys of the frame only, such as CREEL_LISTEN or CREEL_ADMIN_PASSWORD_FILE"
		if near := nearestVariable(name, known); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		problems = append(problems, Problem{Path: name, Warning: true, Message: "nothing reads this environment variable", Hint: hint})
	}
	return problems.Sorted()
}

// nearestVariable compares what stands behind the common prefix.
func nearestVariable(name string, known []string) string {
	var tails []string
	for _, k := range known {
		if tail, ok := strings.CutPrefix(k, Prefix); ok {
			tails = append(tails, strings.ToLower(tail))
		}
	}
	if near := Nearest(strings.TrimPrefix(name, Prefix), tails); near != "" {
		return Prefix + strings.ToUpper(near)
	}
	return ""
}

// fromOrchestrator tells the variables that Kubernetes and container links
// set by themselves for a service named creel.
func fromOrchestrator(name string) bool {
	return name == "CREEL_PORT" || name == "CREEL_NAME" || name == "CREEL_SERVICE_HOST" ||
		strings.HasPrefix(name, "CREEL_PORT_") || strings.HasPrefix(name, "CREEL_SERVICE_PORT")
}

// isVariable tells whether a problem's path names an environment variable.
func isVariable(path string) bool { return strings.HasPrefix(path, Prefix) }
