package deliver

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// mostFirstLine is how much of a script is looked at for the program that runs
// it: as much as Linux reads.
const mostFirstLine = 256

// startError says why a program was not started, and what to do. The errors of
// package os name the program although its interpreter is missing, or the
// working folder.
func (d *Command) startError(err error) error {
	program := d.argv[0]
	if _, wrong := os.Stat(d.folder); wrong != nil && !errors.Is(err, syscall.E2BIG) {
		return fmt.Errorf("its working folder %s can not be entered: %s", d.folder, reasonOf(wrong))
	}
	var place *fs.PathError
	mine := errors.As(err, &place) && place.Path == program
	switch {
	case errors.Is(err, syscall.E2BIG):
		return errors.New("its arguments and environment are too long for this machine")
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: a script begins with a line such as #!/bin/sh", err)
	case mine && errors.Is(err, fs.ErrNotExist):
		return missingFor(program)
	case mine && errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("user id %d may not execute %s: chmod +x, and look at its folders and whether its file system is mounted noexec", os.Getuid(), program)
	}
	return err
}

// missingFor says what is missing to a program that was not found: itself, or
// what is to run it.
func missingFor(program string) error {
	f, err := os.Open(program)
	if err != nil {
		return fmt.Errorf("%s is not there", program)
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, mostFirstLine).ReadSlice('\n')
	text, script := strings.CutPrefix(string(line), "#!")
	switch words := strings.Fields(text); {
	case !script || len(words) == 0:
		return fmt.Errorf("%s is there, and a library or loader that it needs is not", program)
	case strings.HasSuffix(text, "\r\n"):
		return fmt.Errorf("the first line of %s ends with CR LF: save it with the line ends of Unix", program)
	default:
		return fmt.Errorf("%s is there, but its first line names %s, which is not there", program, printable(words[0], mostFirstLine))
	}
}
