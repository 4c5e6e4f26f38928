package app

import (
	"net"
	"os"
	"strconv"
	"time"
)

// notify tells systemd a state ("READY=1", "STOPPING=1", "WATCHDOG=1") when
// the unit asked for it; elsewhere it does nothing. The protocol is
// sd_notify(3): one datagram to the socket named in the environment.
func notify(env func(string) (string, bool), state string) {
	path, ok := env("NOTIFY_SOCKET")
	if !ok || path == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return // a supervisor that went away must not stop the server
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state))
}

// watchdogInterval is how often systemd wants to hear that the server is
// well: half of what the unit allows. Zero means it does not ask.
func watchdogInterval(env func(string) (string, bool)) time.Duration {
	text, _ := env("WATCHDOG_USEC")
	micros, err := strconv.ParseInt(text, 10, 64)
	if err != nil || micros <= 0 {
		return 0
	}
	if pid, ok := env("WATCHDOG_PID"); ok && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return time.Duration(micros) * time.Microsecond / 2
}
