package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"creel/config"
	"creel/event"
	"creel/store"
)

// namedPart is a name that a command was given, and what it may be.
type namedPart struct {
	kind, name string
	configured []string
	stored     func(context.Context, *store.Reader) (bool, error)
}

// strange are the names that the configuration does not have. "" names nothing,
// and one with faults may have every name.
func (s *setup) strange(source, destination string) []namedPart {
	if len(s.faults) > 0 {
		return nil
	}
	cfg := s.config
	parts := []namedPart{
		{"source", source, namesOf(cfg), func(ctx context.Context, r *store.Reader) (bool, error) {
			some, err := r.Events(ctx, event.Selector{Source: source}, event.Page{Limit: 1})
			return len(some) > 0, err
		}},
		{"destination", destination, cfg.DestinationNames(), func(ctx context.Context, r *store.Reader) (bool, error) {
			some, err := r.Deliveries(ctx, store.DeliveryFilter{Destination: destination}, event.Page{Limit: 1})
			return len(some) > 0, err
		}},
	}
	return slices.DeleteFunc(parts, func(p namedPart) bool { return p.name == "" || slices.Contains(p.configured, p.name) })
}

// refuse refuses a name that the database does not know either. One that is gone
// from the configuration may have left events.
func (p namedPart) refuse(ctx context.Context, reader *store.Reader) error {
	known, err := p.stored(ctx, reader)
	if err != nil {
		return failed("", "%w", err)
	}
	if known {
		return nil
	}
	return usage(meant(p.name, p.configured), "there is no %s %q in the configuration, and the database has nothing of one", p.kind, p.name)
}

// noneNamed is the end of a command whose selection matched nothing: where it
// names a source or a destination that nobody knows, that is why.
func noneNamed(ctx context.Context, reader *store.Reader, s *setup, source, destination, hint string) error {
	for _, part := range s.strange(source, destination) {
		if err := part.refuse(ctx, reader); err != nil {
			return err
		}
	}
	return nothing(hint)
}

// known refuses, before anything is done, what names a source or a destination
// that nobody knows.
func (s *setup) known(ctx context.Context, source, destination string) error {
	parts := s.strange(source, destination)
	if len(parts) == 0 {
		return nil
	}
	reader, err := store.OpenRead(ctx, s.config.Database)
	if errors.Is(err, os.ErrNotExist) {
		return usage(meant(parts[0].name, parts[0].configured), "there is no %s %q in the configuration", parts[0].kind, parts[0].name)
	}
	if err != nil {
		return failed("", "%w", err)
	}
	defer reader.Close()
	for _, part := range parts {
		if err := part.refuse(ctx, reader); err != nil {
			return err
		}
	}
	return nil
}

// strangeRule is what the first of some rules that is not known may stand for.
func strangeRule(rules, known []string) string {
	for _, name := range rules {
		if !slices.Contains(known, name) {
			return meant(name, known)
		}
	}
	return "creel check"
}

// meant is what a name that is not known may stand for, and all that there are.
func meant(name string, known []string) string {
	all := strings.Join(known, ", ")
	switch near := config.Nearest(name, known); {
	case len(known) == 0:
		return "creel check: the configuration has none"
	case near != "" && len(known) == 1:
		return near + "?"
	case near != "":
		return near + "? There are " + all
	}
	return "one of " + all
}
