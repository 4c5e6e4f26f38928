package app

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// firstInherited is the first descriptor that socket activation passes; see
// sd_listen_fds(3).
const firstInherited = 3

// inherited returns the listener that systemd passes under a name
// (FileDescriptorName= of the socket unit), or nil. Connections that arrive
// while the server restarts wait in it.
func inherited(env func(string) (string, bool), name string) (net.Listener, error) {
	if pid, _ := env("LISTEN_PID"); pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	names, _ := env("LISTEN_FDNAMES")
	for i, given := range strings.Split(names, ":") {
		if given != name {
			continue
		}
		file := os.NewFile(uintptr(firstInherited+i), name)
		listener, err := net.FileListener(file)
		_ = file.Close()
		if err != nil {
			return nil, fmt.Errorf("take the socket %q from systemd: %w", name, err)
		}
		return listener, nil
	}
	return nil, nil
}

// listen opens a TCP listener, or takes the inherited one of that name.
func listen(env func(string) (string, bool), name, address string) (net.Listener, error) {
	listener, err := inherited(env, name)
	if listener != nil || err != nil {
		return listener, err
	}
	listener, err = net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s on %s: %w (is another server running there?)", name, address, err)
	}
	return listener, nil
}
