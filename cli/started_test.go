package cli

import "testing"

// The advice of the demo names the program as it was started.
func TestStartedAs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"creel": "creel", "./creel": "./creel", "/opt/creel/creel": "/opt/creel/creel", "/tmp/go-build123/b001/exe/creel": "go run .",
	} {
		if got := startedAs(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
