package handlers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"creel/config"
	"creel/event"
	"creel/path"
)

// writing makes event.File.
type writing struct {
	to   []string
	path *path.Template
}

func (c *compiler) file(at string, f *config.WriteFile) maker {
	if f == nil {
		return nil
	}
	c.destinations(config.Join(at, "to"), f.To, config.ToFolder)
	place := config.Join(at, "path")
	out := &writing{to: slices.Clone(f.To), path: c.needed(place, f.Path, `write path = "{source}/{id}.json"`)}
	if out.path == nil {
		return out
	}
	if err := event.CheckPath(withLiterals(out.path)); err != nil {
		c.fault(place, err.Error(), `write path = "{source}/{id}.json": it starts in the destination's folder`)
	} else if !varies(out.path) {
		c.fault(place, "is the same for every event", "put a place of the event into it, such as {id}: a file is not written over another one")
	}
	return out
}

// withLiterals is a template as if every value were an x.
func withLiterals(t *path.Template) string {
	var b strings.Builder
	for _, piece := range t.Pieces() {
		if piece.Literal == "" {
			piece.Literal = "x"
		}
		b.WriteString(piece.Literal)
	}
	return b.String()
}

func (*writing) word() string { return "file" }

func (f *writing) make(_ context.Context, s *subject, o operation) ([]event.Effect, error) {
	place, err := f.path.ExecuteKey(s.doc, s.name)
	if err == nil {
		place, err = safePath(place)
	}
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	effects := make([]event.Effect, len(f.to))
	for i, destination := range f.to {
		effects[i] = event.File{Key: o.key, Rule: o.rule, Destination: destination, Path: place, Lane: o.lane, LaneSkip: o.laneSkip}
	}
	return effects, nil
}

// safePath makes a path of a text whose values are escaped as in a key: the
// slashes in it are the template's. What would lead elsewhere, or is the name
// of a file that is being written, becomes a name like any other.
func safePath(text string) (string, error) {
	parts := strings.Split(text, "/")
	for i, part := range parts {
		if part == "." || part == ".." || strings.HasPrefix(part, event.TemporaryFile) {
			parts[i] = "%2E" + part[1:]
		}
	}
	text = strings.Join(parts, "/")
	return text, event.CheckPath(text)
}
