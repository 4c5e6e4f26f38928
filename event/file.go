package event

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of the path of a file, in bytes. A segment is bounded by the file
// systems of Unix (NAME_MAX).
const (
	maxPath    = 1024
	maxSegment = 255
)

// TemporaryFile starts the name of a file that is not yet whole. No delivery
// may have such a name.
const TemporaryFile = ".creel-"

// ErrPath says that a text is no path inside a folder.
var ErrPath = errors.New("is not a path inside the folder")

// File asks for the event's body as a file in a folder of the owner's. Its
// identity is the business key, the destination and the path.
type File struct {
	Key         string // business key, unfolded
	Rule        string
	Destination string
	Path        string // in the destination's folder, see CheckPath
	// Lane as in Forward.
	Lane     string
	LaneSkip bool
}

// Kind implements Effect.
func (File) Kind() string { return "file" }

// BusinessKey implements Effect.
func (f File) BusinessKey() string { return f.Key }

// RuleName implements Effect.
func (f File) RuleName() string { return f.Rule }

// CheckPath tells whether a path stays inside the folder that it starts in:
// relative, its segments split by slashes, none of them empty, "." or "..",
// none over 255 bytes, no control characters, valid UTF-8. The error wraps
// ErrPath and quotes nothing of the path.
func CheckPath(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("it is empty: %w", ErrPath)
	case len(path) > maxPath:
		return fmt.Errorf("it has more than %d bytes: %w", maxPath, ErrPath)
	case !utf8.ValidString(path):
		return fmt.Errorf("it is not UTF-8: %w", ErrPath)
	case strings.ContainsFunc(path, func(r rune) bool { return escaped(r) && r != '/' && r != '%' && r != utf8.RuneError }):
		return fmt.Errorf("it has a control character: %w", ErrPath)
	}
	for segment := range strings.SplitSeq(path, "/") {
		switch {
		case segment == "":
			return fmt.Errorf("a part of it is empty: %w", ErrPath)
		case segment == "." || segment == "..":
			return fmt.Errorf("a part of it is %q: %w", segment, ErrPath)
		case len(segment) > maxSegment:
			return fmt.Errorf("a part of it has more than %d bytes: %w", maxSegment, ErrPath)
		case strings.HasPrefix(segment, TemporaryFile):
			return fmt.Errorf("a part of it begins with %s, as files that are being written do: %w", TemporaryFile, ErrPath)
		}
	}
	return nil
}
