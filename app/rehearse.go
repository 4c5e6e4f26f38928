package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/store"
)

// Rehearsal is what a start with a configuration would come to, by a copy of its
// database.
type Rehearsal struct {
	store.Rehearsed
	Migrations []string     `json:"migrations"`  // of the owner's, which were applied to the copy
	Purge      store.Purged `json:"would_purge"` // by the retention, within the first hour
	Orphans    []Orphan     `json:"orphans"`
}

// Orphan is work that waits for what the configuration does not have.
type Orphan struct {
	Kind  string `json:"kind"` // source or destination
	Name  string `json:"name"`
	Count int64  `json:"count"`          // events that are not decided, or deliveries that wait or are in doubt
	Dead  int64  `json:"dead,omitempty"` // deliveries that are dead, and could only be replayed to it
}

// String is the orphan in words.
func (o Orphan) String() string {
	if o.Kind == "source" {
		return fmt.Sprintf("the source %q is gone, and events of it are not decided yet: %d", o.Name, o.Count)
	}
	return fmt.Sprintf("the destination %q is gone: of the deliveries to it, waiting or in doubt: %d, dead: %d", o.Name, o.Count, o.Dead)
}

// Rehearse does to the database of a configuration, which is a copy that
// store.Rehearse has brought forward, what a start does next, and looks what
// that start would leave behind.
func (s *Snapshot) Rehearse(ctx context.Context, now func() time.Time) (r Rehearsal, err error) {
	r.Migrations, r.Orphans = []string{}, []Orphan{}
	if s.Config.SQL.Migrations != "" {
		if r.Migrations, err = s.rehearseSteps(ctx, now); err != nil {
			return r, err
		}
	}
	reader, err := store.OpenRead(ctx, s.Config.Database)
	if err != nil {
		return r, err
	}
	defer reader.Close()
	if r.Purge, err = reader.Purgeable(ctx, now(), KeepTimes(s.Config), nil); err != nil {
		return r, err
	}
	names, counts, err := reader.OpenSources(ctx)
	if err != nil {
		return r, err
	}
	for _, name := range names {
		if s.Sources[name] == nil {
			r.Orphans = append(r.Orphans, Orphan{Kind: "source", Name: name, Count: counts[name]})
		}
	}
	census, err := reader.Census(ctx)
	if err != nil {
		return r, err
	}
	known := s.Config.DestinationNames()
	for _, name := range slices.Sorted(maps.Keys(census.Deliveries)) {
		waiting, dead := census.Waiting(name)
		if !slices.Contains(known, name) && waiting+dead > 0 {
			r.Orphans = append(r.Orphans, Orphan{Kind: "destination", Name: name, Count: waiting, Dead: dead})
		}
	}
	return r, nil
}

func (s *Snapshot) rehearseSteps(ctx context.Context, now func() time.Time) (names []string, err error) {
	own, err := store.Open(ctx, store.Options{Path: s.Config.Database, Log: zerolog.Nop(), Clock: now})
	if err != nil {
		return nil, err
	}
	names, err = own.ApplyOwnSteps(ctx, now(), s.Config.SQL.Migrations, s.ownSteps)
	return append([]string{}, names...), errors.Join(err, own.Close())
}

// Orphaned are the orphans of a rehearsal as warnings, but for those that every
// comparison with a database warns of.
func (r *Rehearsal) Orphaned(s *Snapshot) config.Problems {
	var problems config.Problems
	for _, o := range r.Orphans {
		if o.Kind != "source" {
			continue
		}
		hint := "no rule takes them: they would end as ignored; put the source back under that name until they are through"
		if s.Rules.MatchesSource(o.Name) {
			hint = "a rule takes them all the same, without what belonged to the source; put it back under that name until they are through"
		}
		problems = append(problems, config.Problem{Path: "source", Warning: true, Message: o.String(), Hint: hint})
	}
	return problems
}
