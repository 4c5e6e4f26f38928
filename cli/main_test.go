package cli_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"creel/cli"
	"creel/internal/testkit"
)

// TestMain lets the scripts call this test binary as creel, and removes the
// real binary that the other tests have built.
func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){"creel": func() { cli.Main() }})
}

type suite struct{ *testing.M }

func (s suite) Run() int { return testkit.Run(s.M) }
