package app

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"creel/config"
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
	i := passed(env, name)
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

// passed is which of the sockets that systemd passes has a name, or -1.
func passed(env func(string) (string, bool), name string) int {
	if pid, _ := env("LISTEN_PID"); pid != strconv.Itoa(os.Getpid()) {
		return -1
	}
	text, _ := env("LISTEN_FDS")
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 {
		return -1
	}
	names := []string{socketName}
	if given, ok := env("LISTEN_FDNAMES"); ok {
		names = strings.Split(given, ":")
	}
	return slices.Index(names[:min(count, len(names))], name)
}

// CanListen tells, before the first start makes a database, whether the server
// could listen where it is to: one that can not leaves no empty database behind.
// Where there is a database it says nothing: whoever has it open is the better
// answer.
func CanListen(env func(string) (string, bool), cfg *config.Config) error {
	if _, err := os.Stat(cfg.Database); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for name, address := range map[string]string{socketName: cfg.Listen, adminSocketName: cfg.Admin.Listen} {
		if passed(env, name) >= 0 {
			continue
		}
		listener, err := listen(env, name, address)
		if err != nil {
			return err
		}
		if err := listener.Close(); err != nil {
			return fmt.Errorf("try to listen for %s on %s: %w", name, address, err)
		}
	}
	return nil
}

// listen opens a TCP listener, or takes the inherited one of that name.
func listen(env func(string) (string, bool), name, address string) (net.Listener, error) {
	listener, err := inherited(env, name)
	if listener != nil || err != nil {
		return listener, err
	}
	listener, err = net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s on %s: %w (%s)", name, address, err, whyNot(err))
	}
	return listener, nil
}

// whyNot is what to look at where an address can not be listened on.
func whyNot(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "is another server running there?"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine has no such address"
	case errors.Is(err, os.ErrPermission):
		return "this user may not: take a port from 1024 on, or allow it with CAP_NET_BIND_SERVICE"
	}
	return "write host:port of this machine"
}
