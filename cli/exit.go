package cli

import (
	"errors"
	"fmt"

	"creel/admin"
)

// The exit codes. Scripts rely on them.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2 // wrong arguments or configuration
	exitPartly  = 3 // some keys of a bulk action were refused
	exitNothing = 4 // the selection matched nothing
)

// exit is an error with the exit code that it means.
type exit struct {
	code int
	err  error
	hint string // what to do next; "" where the error says it
}

func (e *exit) Error() string { return e.err.Error() }
func (e *exit) Unwrap() error { return e.err }

func usage(hint, format string, args ...any) error {
	return &exit{code: exitUsage, err: fmt.Errorf(format, args...), hint: hint}
}

// failed keeps the hint of an error that has one, where there is none of its own.
func failed(hint, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if inner := (*exit)(nil); hint == "" && errors.As(err, &inner) {
		hint = inner.hint
	}
	if hint == "" {
		hint = admin.HintOf(err)
	}
	return &exit{code: exitFailed, err: err, hint: hint}
}

// errNothing is the end of a command whose selection matched nothing.
var errNothing = errors.New("nothing matched")

func nothing(hint string) error {
	return &exit{code: exitNothing, err: errNothing, hint: hint}
}

// silent ends a command that has already printed what is wrong.
func silent(code int) error { return &exit{code: code, err: errSilent} }

var errSilent = errors.New("")

func codeOf(err error) int {
	var coded *exit
	if errors.As(err, &coded) {
		return coded.code
	}
	return exitFailed
}
