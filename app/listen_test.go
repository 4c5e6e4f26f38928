package app

import (
	"net"
	"strings"
	"testing"
)

// An address that can not be listened on says which reason it has.
func TestListenSaysWhyNot(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	none := func(string) (string, bool) { return "", false }
	for address, want := range map[string]string{
		taken.Addr().String(): "is another server running there?",
		"203.0.113.7:8080":    "this machine has no such address",
	} {
		if _, err := listen(none, "senders", address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
