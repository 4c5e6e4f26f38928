package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// readPatience is how long the file of a secret may take to be read. A pipe may
// have nobody who writes it, and so may what the kernel shows as a file.
const readPatience = 3 * time.Second

// pipePause is the wait before a pipe that nobody writes yet is looked at again.
const pipePause = 20 * time.Millisecond

// readRegular reads a file of at most limit bytes. Pipes and devices are
// refused because opening them may wait for ever.
func readRegular(name string, limit int64) ([]byte, error) {
	about, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !about.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readWhole(file, limit)
}

// readSecretFile reads a regular file or a pipe, within the time that patience
// leaves. It tells whether the file gives its content again.
func readSecretFile(name string, patience time.Duration) (data []byte, again bool, err error) {
	about, err := os.Stat(name)
	if err != nil {
		return nil, true, err
	}
	pipe := about.Mode()&fs.ModeNamedPipe != 0
	if !pipe && !about.Mode().IsRegular() {
		return nil, true, fmt.Errorf("%s is not a regular file", name)
	}
	// Opened to wait, a pipe would wait for its writer for ever.
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, true, err
	}
	defer file.Close()
	until := time.Now().Add(patience)
	_ = file.SetReadDeadline(until) // a file on a disk has none and needs none
	for {
		data, err = readWhole(file, maxSecretFile)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && pipe:
			return nil, false, late(name + " is a pipe, and nobody wrote it to its end within " + patience.String())
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, false, late(name + " did not come to its end within " + patience.String())
		case !pipe || err != nil || len(data) > 0:
			return data, !pipe, err
		}
		time.Sleep(pipePause) // its writer has not opened it yet
	}
}

// late says that a file took too long.
type late string

func (l late) Error() string { return string(l) }
func (late) Unwrap() error   { return os.ErrDeadlineExceeded }

func readWhole(file *os.File, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %s", file.Name(), Size(limit))
	}
	return data, nil
}

// exposed tells of a secret's file that other users can read, or any other than
// its owner can change. A group may read it: so it is given to a server that does not own
// it. What hands a secret to this server alone has modes of its own: pipes, the
// credentials of systemd and the secrets of containers.
func (s Secret) exposed(env Environment) (name string, mode fs.FileMode, open bool) {
	name, is := s.File()
	if !is {
		return "", 0, false
	}
	about, err := os.Stat(name)
	if err != nil || !about.Mode().IsRegular() {
		return name, 0, false
	}
	private := []string{"/run/secrets", "/var/run/secrets"}
	if folder, ok := env("CREDENTIALS_DIRECTORY"); ok && filepath.IsAbs(folder) {
		private = append(private, folder)
	}
	places := []string{name}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		places = append(places, real)
	}
	for _, folder := range private {
		for _, place := range places {
			if below, err := filepath.Rel(folder, place); err == nil && filepath.IsLocal(below) {
				return name, 0, false
			}
		}
	}
	mode = about.Mode().Perm()
	return name, mode, mode&0o026 != 0
}
