package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// pipe makes a named pipe; text is written into it once, "" by nobody.
func pipe(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if text != "" {
		go func() { _ = os.WriteFile(name, []byte(text), 0o600) }()
	}
	return name
}

// A pipe gives a secret once, and it is read more than once.
func TestSecretFromPipe(t *testing.T) {
	t.Parallel()
	secret := NewSecret("file:" + pipe(t, "s3cret\n"))
	copied := secret
	for range 3 {
		got, err := copied.Resolve(testEnvironment())
		if err != nil || string(got) != "s3cret" || len(secret.Warnings(testEnvironment())) > 0 {
			t.Fatalf("got %q %v", got, err)
		}
	}
}

// Nobody writes the pipe: that is told, and nothing hangs.
func TestSecretFromPipeOfNobody(t *testing.T) {
	t.Parallel()
	silent := pipe(t, "")
	held := pipe(t, "")
	writer, err := os.OpenFile(held, os.O_RDWR, 0) // opened, and nothing comes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writer.Close() })
	for _, name := range []string{silent, held} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			_, problems := Parse(write(t, "creel.toml", ""), []byte("[admin]\npassword = \"file:"+name+"\"\n"), testEnvironment())
			if len(problems) != 1 || !has(problems.Faults(), "admin.password", name+" is a pipe, and nobody wrote it to its end within", "a reload reads it again") {
				t.Errorf("got %v", problems)
			}
		})
	}
}

// What the kernel shows as a regular file may never end.
func TestSecretFromFileWithoutEnd(t *testing.T) {
	t.Parallel()
	const endless = "/proc/kmsg"
	if file, err := os.Open(endless); err != nil {
		t.Skip(err)
	} else {
		file.Close()
	}
	_, err := NewSecret("file:" + endless).Resolve(testEnvironment())
	if err == nil || !strings.Contains(err.Error(), endless) { // its end is not reached, or it is too large
		t.Errorf("got %v", err)
	}
}
