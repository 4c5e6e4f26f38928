package app_test

import (
	"testing"

	"creel/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
