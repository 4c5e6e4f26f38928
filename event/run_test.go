package event

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestTheMessageOfARun(t *testing.T) {
	t.Parallel()
	run := Run{Fields: []Field{{Name: "b", Value: "a\x00b\xff<&>\"\n\uFFFD%"}, {Name: "a"}}}
	want := []Field{{Name: "a"}, {Name: "b", Value: "a%00b%FF<&>\"\n\uFFFD%"}}
	got, err := FieldsOf(run.Message())
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %q", err, got)
	}
	slices.Reverse(run.Fields)
	if other := run.Message(); other != (Run{Fields: want}).Message() {
		t.Errorf("equal runs differ: %s", other)
	}
	if got, err := FieldsOf(Run{}.Message()); err != nil || got != nil {
		t.Errorf("%v %v", got, err)
	}
	if _, err := FieldsOf("{"); err == nil {
		t.Error("nonsense was read")
	}
}

func TestPathsStayInside(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 255)
	for _, path := range []string{"a", "a/b.json", "...", "a..b", "-rf", ".hidden", "ü/\uFFFD", "a b", `a\b`, "%2F", long, long + "/" + long} {
		if err := CheckPath(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a\x00", "a\nb", "a\x7f", "a\u0085", "\xff",
		long + "x", strings.Repeat("x/", 600) + "x", ".creel-a", "a/.creel-a"} {
		if err := CheckPath(path); !errors.Is(err, ErrPath) {
			t.Errorf("%q: %v", path, err)
		}
	}
}
