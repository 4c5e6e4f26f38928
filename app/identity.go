package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"creel/config"
	"creel/store"
)

// fingerprints are how the sources of a configuration tell events apart.
func (s *Snapshot) fingerprints() map[string]string {
	prints := make(map[string]string, len(s.Sources))
	for name, compiled := range s.Sources {
		prints[name] = compiled.Fingerprint()
	}
	return prints
}

// identityHint is what to do about a source whose identity settings changed.
const identityHint = "put the old settings back, give the source a new name, or start once with --accept-new-identity; " +
	"with new settings an event that is already here may come in a second time"

// comparable refuses a configuration whose sources would tell their stored
// events apart in another way: it would open their deduplication again.
func (a *App) comparable(ctx context.Context, s *Snapshot) error {
	changed, err := a.store.ChangedIdentities(ctx, s.fingerprints())
	if err != nil {
		return err
	}
	if len(changed) > 0 && !a.opt.AcceptNewIdentity {
		return refusal{fmt.Errorf("the identity settings of %s changed: %s", strings.Join(changed, ", "), identityHint)}
	}
	return nil
}

// remember keeps how the sources in force tell their events apart.
func (a *App) remember(ctx context.Context, s *Snapshot) error {
	return a.store.SaveIdentities(ctx, a.opt.Clock(), s.fingerprints())
}

// Compare reports what a configuration would change for the events that the
// database already has. It only reads, beside a running server or not.
func Compare(ctx context.Context, s *Snapshot) config.Problems {
	if _, err := os.Stat(s.Config.Database); errors.Is(err, os.ErrNotExist) {
		return Homeless(s.Config.Database)
	}
	reader, err := store.OpenRead(ctx, s.Config.Database)
	if err != nil {
		return config.Problems{{Path: "database", Message: err.Error()}}
	}
	defer reader.Close()
	changed, err := reader.ChangedIdentities(ctx, s.fingerprints())
	if err != nil {
		return config.Problems{{Path: "database", Message: err.Error()}}
	}
	var problems config.Problems
	for _, name := range changed {
		i := slices.IndexFunc(s.Config.Sources, func(c config.Source) bool { return c.Name == name })
		problems = append(problems, config.Problem{Path: config.Item("source", i),
			Message: fmt.Sprintf("the identity settings of %q are not those of its stored events", name), Hint: identityHint})
	}
	return append(problems, leftBehind(ctx, reader, s)...)
}

// leftBehind warns of what in the database belonged to an earlier configuration
// and has no place in this one.
func leftBehind(ctx context.Context, reader *store.Reader, s *Snapshot) config.Problems {
	return slices.Concat(missingRules(ctx, reader, s), waitingSteps(ctx, reader, s), stranded(ctx, reader, s))
}

// Homeless reports a database that the first start could not make: it makes the
// file, and no folder.
func Homeless(database string) config.Problems {
	folder := filepath.Dir(database)
	if about, err := os.Stat(folder); err == nil && about.IsDir() {
		return nil
	}
	return config.Problems{{Path: "database", Message: "there is no folder " + folder, Unresolved: true,
		Hint: "make it, for the server's user alone: install -d -m 700 -o USER " + folder}}
}

// stranded warns of deliveries that wait for a destination which the
// configuration does not have any more: nothing will ever send them.
func stranded(ctx context.Context, reader *store.Reader, s *Snapshot) config.Problems {
	waiting, err := reader.WaitingDestinations(ctx)
	if err != nil {
		return config.Problems{{Path: "database", Message: err.Error()}}
	}
	var problems config.Problems
	known := s.Config.DestinationNames()
	for _, name := range waiting {
		if !slices.Contains(known, name) {
			problems = append(problems, config.Problem{Path: "destination", Warning: true,
				Message: fmt.Sprintf("deliveries wait for the destination %q, which is gone", name),
				Hint:    "put it back under that name; creel deliveries --destination " + name + " lists them"})
		}
	}
	return problems
}

// missingRules warns of rules that made deliveries and are gone: a rule's name
// is part of the keys that it makes, so one that was renamed is another rule.
func missingRules(ctx context.Context, reader *store.Reader, s *Snapshot) config.Problems {
	known, err := reader.KnownRules(ctx)
	if err != nil {
		return config.Problems{{Path: "database", Message: err.Error()}}
	}
	var problems config.Problems
	names := s.Rules.Names()
	for _, name := range known {
		if slices.Contains(names, name) {
			continue
		}
		problems = append(problems, config.Problem{Path: "rule", Warning: true,
			Message: fmt.Sprintf("the rule %q has made deliveries and is gone", name),
			Hint:    "where it was renamed: its keys without a key of their own are new ones, and a replay may send once more; put the old name back"})
	}
	return problems
}
