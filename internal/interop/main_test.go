//go:build interop

package interop

import (
	"testing"

	"creel/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
