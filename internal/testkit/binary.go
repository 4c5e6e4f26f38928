package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// binary is built once in a run of a test package and removed by Main.
var binary struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// Binary builds the product as it is released (no CGo, stripped) once in a
// test run and returns its path. The package's TestMain must call Main.
func Binary(t testing.TB) string {
	t.Helper()
	binary.once.Do(func() { binary.path, binary.err = build() })
	if binary.err != nil {
		t.Fatalf("build the binary: %v", binary.err)
	}
	return binary.path
}

// Main runs the tests of a package and removes what Binary built. Use it as
// the whole of TestMain.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a TestMain that does more: it returns the exit code.
func Run(m *testing.M) int {
	code := m.Run()
	if binary.dir != "" {
		_ = os.RemoveAll(binary.dir)
	}
	return code
}

func build() (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	if binary.dir, err = os.MkdirTemp("", "creel-binary-"); err != nil {
		return "", err
	}
	path := filepath.Join(binary.dir, "creel")
	return path, compile(root, ".", path)
}

// Build builds a custom binary, the main package in a folder below the
// module's, the same way and returns its path.
func Build(t testing.TB, folder string) string {
	t.Helper()
	root, err := ModuleRoot()
	if err != nil {
		t.Fatalf("build %s: %v", folder, err)
	}
	path := filepath.Join(t.TempDir(), "creel")
	if err := compile(root, "./"+folder, path); err != nil {
		t.Fatalf("build %s: %v", folder, err)
	}
	return path
}

func compile(root, folder, into string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-tags=nethttpomithttp2", "-ldflags=-s -w", "-o", into, folder)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// ModuleRoot is the folder of go.mod.
func ModuleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("ask go for the module: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", fmt.Errorf("not inside a module")
	}
	return filepath.Dir(file), nil
}
