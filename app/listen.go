package app

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The names of the listeners, as socket units give them.
const (
	socketName      = "creel"
	adminSocketName = "creel-admin"
)

// firstInherited is the first descriptor that socket activation passes; see
// sd_listen_fds(3).
const firstInherited = 3

// inherited returns the listener that systemd passes under a name
// (FileDescriptorName= of the socket unit), or nil. Connections that arrive
// while the server restarts wait in it. A single socket without a name is the
// senders'.
func inherited(env func(string) (string, bool), name string) (net.Listener, error) {
	if pid, _ := env("LISTEN_PID"); pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	text, _ := env("LISTEN_FDS")
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 {
		return nil, nil
	}
	names := []string{socketName}
	if given, ok := env("LISTEN_FDNAMES"); ok {
		names = strings.Split(given, ":")
	}
	i := slices.Index(names[:min(count, len(names))], name)
	if i < 0 {
		return nil, nil
	}
	file := os.NewFile(uintptr(firstInherited+i), name)
	listener, err := net.FileListener(file)
	_ = file.Close() // the listener has a descriptor of its own
	if err != nil {
		return nil, fmt.Errorf("take the socket %q from systemd: %w", name, err)
	}
	return listener, nil
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
