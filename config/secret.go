package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// shown is what stands for a secret wherever one is printed.
const shown = "[secret]"

// maxSecretFile bounds what is read of a secret's file, in bytes.
const maxSecretFile = 64 << 10

// Environment looks up a variable, as os.LookupEnv does.
type Environment = func(name string) (string, bool)

// Secret is a reference to something that must not be shown: "env:NAME",
// "file:PATH", "credential:NAME" (a systemd credential), or the secret itself.
// Every way of printing or marshalling it gives [secret], and "" where there
// is none.
type Secret struct {
	// A pointer, because fmt can not call our methods on an unexported field
	// of somebody else's struct: it prints an address there instead. One pointer
	// is not enough: of a struct behind it fmt prints the fields.
	ref **reference
}

// reference is what a secret names. Copies of a secret share it.
type reference struct {
	text string

	// What a file gives only once, such as a pipe, is kept: a secret is read
	// several times.
	mu   sync.Mutex
	read bool
	data []byte
	err  error
}

// NewSecret makes a secret of its reference, as it is written in a file.
func NewSecret(ref string) Secret {
	if ref == "" {
		return Secret{}
	}
	r := &reference{text: ref}
	return Secret{ref: &r}
}

// SecretError says why a secret could not be read, and what to do. It never
// holds the secret.
type SecretError struct {
	Reason string
	Hint   string
	Err    error
}

// Error implements error.
func (e *SecretError) Error() string { return e.Reason }

// Unwrap returns the cause.
func (e *SecretError) Unwrap() error { return e.Err }

// ErrEmptySecret says that a secret was found and is empty.
var ErrEmptySecret = errors.New("the secret is empty")

// IsZero tells whether no secret was configured.
func (s Secret) IsZero() bool { return s.ref == nil }

// Literal tells whether the secret itself stands in the configuration.
func (s Secret) Literal() bool {
	scheme, _ := s.split()
	return s.ref != nil && scheme == ""
}

// File is the file that the secret names; false where it names none.
func (s Secret) File() (string, bool) {
	scheme, name := s.split()
	return name, scheme == "file" && name != ""
}

// Equal tells whether both are the same reference.
func (s Secret) Equal(other Secret) bool { return s.text() == other.text() }

// Resolve reads the secret. Of a file exactly one final line end (\n or \r\n)
// is removed; everything else is kept as it is. The error is a *SecretError.
func (s Secret) Resolve(env Environment) ([]byte, error) {
	scheme, name := s.split()
	if s.ref == nil {
		return nil, &SecretError{Reason: "no secret is set", Err: ErrEmptySecret}
	}
	switch scheme {
	case "env":
		return fromEnvironment(name, env)
	case "file":
		return (*s.ref).file(name)
	case "credential":
		return (*s.ref).credential(name, env)
	}
	if variable := shellReference.FindStringSubmatch(name); variable != nil {
		return nil, &SecretError{
			Reason: "is written as a shell would read it, and no shell reads this file",
			Hint:   fmt.Sprintf("write %q", "env:"+variable[1]),
		}
	}
	return []byte(name), nil
}

// Warnings tells what is odd about the secret without being wrong: blanks at
// an edge, a secret that stands in the file itself. It says nothing about one
// that can not be resolved.
func (s Secret) Warnings(env Environment) []string {
	plain, err := s.Resolve(env)
	if err != nil {
		return nil
	}
	var out []string
	if s.Literal() {
		out = append(out, `the secret stands in the configuration itself: "env:NAME" or "file:PATH" keep it out`)
		if scheme, _, ok := strings.Cut(string(plain), ":"); ok && Nearest(scheme, []string{"env", "file", "credential"}) != "" {
			out = append(out, `it looks like a misspelt "env:", "file:" or "credential:" reference and is taken as the secret itself`)
		}
	}
	if strings.TrimSpace(string(plain)) != string(plain) {
		out = append(out, "the secret begins or ends with a blank or a line end, which is taken as a part of it")
	}
	return out
}

// under makes the path of a secret's file relative to a folder.
func (s Secret) under(folder string) Secret {
	scheme, name := s.split()
	if scheme != "file" || name == "" || filepath.IsAbs(name) {
		return s
	}
	return NewSecret("file:" + filepath.Join(folder, name))
}

// variable returns the environment variable that the secret names, or "".
func (s Secret) variable() string {
	if scheme, name := s.split(); scheme == "env" {
		return name
	}
	return ""
}

func (s Secret) text() string {
	if s.ref == nil {
		return ""
	}
	return (*s.ref).text
}

func (s Secret) split() (scheme, name string) {
	scheme, name, _ = strings.Cut(s.text(), ":")
	switch scheme {
	case "env", "file", "credential":
		return scheme, name
	}
	return "", s.text()
}

var (
	shellReference = regexp.MustCompile(`^\$\{?([A-Z_][A-Z0-9_]*)\}?$`)
	variableName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func fromEnvironment(name string, env Environment) ([]byte, error) {
	if !variableName.MatchString(name) {
		return nil, &SecretError{
			Reason: "names no environment variable",
			Hint:   `write "env:NAME" with letters, digits and underscores`,
		}
	}
	value, ok := env(name)
	if !ok {
		return nil, &SecretError{
			Reason: "the environment variable " + name + " is not set",
			Hint:   "set it where creel is started; systemd: Environment= or EnvironmentFile=, a container: env_file",
		}
	}
	if value == "" {
		return nil, &SecretError{
			Reason: "the environment variable " + name + " is empty",
			Hint:   "see what sets it: a reference to another variable may have come to nothing",
			Err:    ErrEmptySecret,
		}
	}
	return []byte(value), nil
}

func (r *reference) credential(name string, env Environment) ([]byte, error) {
	if name == "" || name != filepath.Base(name) || name == "." || name == ".." {
		return nil, &SecretError{Reason: "names no credential", Hint: `write "credential:NAME", without a folder`}
	}
	folder, ok := env("CREDENTIALS_DIRECTORY")
	if !ok || folder == "" {
		return nil, &SecretError{
			Reason: "the credential " + name + " can not be found: CREDENTIALS_DIRECTORY is not set",
			Hint:   "start creel by a systemd unit with LoadCredential=" + name + ":PATH",
		}
	}
	return r.file(filepath.Join(folder, name))
}

func (r *reference) file(name string) ([]byte, error) {
	if name == "" {
		return nil, &SecretError{Reason: "names no file", Hint: `write "file:PATH"`}
	}
	data, err := r.open(name)
	if err != nil {
		hint := "the file must exist, be readable by the user that runs creel, and be under 64 KiB"
		if errors.Is(err, os.ErrDeadlineExceeded) {
			hint = "write the secret into a file, or name a variable or a credential: a pipe gives it once, and a reload reads it again"
		}
		return nil, &SecretError{Reason: "the secret's file can not be read: " + err.Error(), Hint: hint, Err: err}
	}
	data = trimLineEnd(data)
	if len(data) == 0 {
		return nil, &SecretError{
			Reason: "the secret's file " + name + " is empty",
			Hint:   "write the secret into it",
			Err:    ErrEmptySecret,
		}
	}
	return data, nil
}

// open reads the file, or gives what it gave before where it gives that once.
func (r *reference) open(name string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read {
		return r.data, r.err
	}
	data, again, err := readSecretFile(name, readPatience)
	if !again {
		r.read, r.data, r.err = true, data, err
	}
	return data, err
}

// trimLineEnd removes exactly one final line end: editors and echo write one,
// and whatever stands before it may be meant.
func trimLineEnd(data []byte) []byte {
	n := len(data)
	switch {
	case n >= 2 && data[n-2] == '\r' && data[n-1] == '\n':
		return data[:n-2]
	case n >= 1 && data[n-1] == '\n':
		return data[:n-1]
	}
	return data
}

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s.ref == nil {
		return ""
	}
	return shown
}

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return shown }

// Format implements fmt.Formatter for every verb.
func (s Secret) Format(state fmt.State, _ rune) { io.WriteString(state, s.String()) }

// MarshalText implements encoding.TextMarshaler, which JSON, TOML and log
// lines use.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
