package admin

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// maxSocketPath is the longest path that fits a unix socket address on Linux
// (sun_path has 108 bytes, the last of them NUL; unix(7)).
const maxSocketPath = 107

// Listen opens the control socket at path, readable and writable by its owner
// alone. A socket left by a server that was killed is removed: the database
// lock, which the caller holds, says that nobody is behind it.
func Listen(path string) (net.Listener, error) {
	if old, err := os.Lstat(path); err == nil && old.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%s is no socket and stands where the control socket goes: move it away", path)
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("remove the old control socket: %w", err)
	}
	short, done, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	listener, err := net.Listen("unix", short)
	if err != nil {
		return nil, fmt.Errorf("listen on the control socket %s: %w", path, err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // the short path may be gone by then
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("protect the control socket: %w", err)
	}
	return listener, nil
}

// shortPath gives a name for path that fits a socket address: itself, or one
// through an open descriptor of its folder.
func shortPath(path string) (string, func(), error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, fmt.Errorf("open the folder of the control socket: %w", err)
	}
	short := fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path))
	return short, func() { _ = folder.Close() }, nil
}
