package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"creel/config"
	"creel/store"
)

// hasSQL tells whether a configuration has SQL of the owner's.
func hasSQL(cfg *config.Config) bool {
	return cfg.SQL.Migrations != "" || slices.ContainsFunc(cfg.Rules, func(r config.Rule) bool { return r.SQL != nil })
}

// compileSQL reads the owner's migrations and judges them with the statements of
// the rules, against the tables that the database has.
func (s *Snapshot) compileSQL() config.Problems {
	cfg := s.Config
	if !hasSQL(cfg) {
		return nil
	}
	var problems config.Problems
	if cfg.SQL.Migrations != "" {
		steps, faults := store.ReadOwnSteps(cfg.SQL.Migrations)
		if len(faults) > 0 {
			for _, fault := range faults {
				problems = append(problems, migrationProblem(fault))
			}
			return problems
		}
		s.ownSteps = steps
	}
	check := store.OwnCheck{Database: cfg.Database, Folder: cfg.SQL.Migrations, Steps: s.ownSteps}
	for i := range cfg.Rules {
		var own store.OwnRule
		if q := cfg.Rules[i].SQL; q != nil {
			own = store.OwnRule{Statements: q.Statements, Params: slices.Sorted(maps.Keys(q.Params))}
		}
		check.Rules = append(check.Rules, own)
	}
	faults, err := store.CheckOwn(check)
	if err != nil {
		problems = append(problems, config.Problem{Path: "database", Message: err.Error()})
	}
	for _, fault := range faults {
		if fault.File != "" {
			problems = append(problems, migrationProblem(fault))
			continue
		}
		problems = append(problems, config.Problem{Path: statementPath(cfg, fault), Message: fault.Message, Hint: fault.Hint})
	}
	return problems
}

func migrationProblem(fault *store.OwnFault) config.Problem {
	place := fault.File
	if fault.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, fault.Line)
	}
	return config.Problem{Path: "sql.migrations", Message: place + ": " + fault.Message, Hint: fault.Hint}
}

// statementPath is the key path of what a fault is about. A lone statement may
// be written without a list.
func statementPath(cfg *config.Config, fault *store.OwnFault) string {
	at := config.Join(config.Item("rule", fault.Rule), "sql")
	if fault.Part < 0 {
		return config.Join(at, "params", fault.Param)
	}
	at = config.Join(at, "statements")
	if len(cfg.Rules[fault.Rule].SQL.Statements) > 1 {
		at = config.Item(at, fault.Part)
	}
	return at
}

// migrate brings the owner's tables forward and sets how long statements may
// run.
func (a *App) migrate(ctx context.Context) error {
	cfg := a.snapshot.Load().Config
	a.store.LimitOwn(time.Duration(cfg.SQL.Timeout))
	if cfg.SQL.Migrations == "" {
		return nil
	}
	names, err := a.store.ApplyOwnSteps(ctx, a.opt.Clock(), cfg.SQL.Migrations, a.snapshot.Load().ownSteps)
	for _, name := range names {
		a.opt.Log.Info().Str("migration", name).Msg("a migration of the owner was applied")
	}
	return err
}

// migrated refuses a new configuration while a migration waits for the start.
func (a *App) migrated(ctx context.Context, s *Snapshot) error {
	if s.Config.SQL.Migrations == "" {
		return nil
	}
	names, _, err := a.store.PendingOwnSteps(ctx, s.Config.SQL.Migrations, s.ownSteps)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return refusal{fmt.Errorf("%s is applied by a start alone: restart the server", strings.Join(names, ", "))}
	}
	return nil
}

// waitingSteps tells of migrations that the next start applies.
func waitingSteps(ctx context.Context, reader *store.Reader, s *Snapshot) config.Problems {
	if s.Config.SQL.Migrations == "" {
		return nil
	}
	names, _, err := reader.PendingOwnSteps(ctx, s.Config.SQL.Migrations, s.ownSteps)
	if err != nil {
		return config.Problems{{Path: "database", Message: err.Error()}}
	}
	var problems config.Problems
	for _, name := range names {
		problems = append(problems, config.Problem{Path: "sql.migrations", Warning: true, Message: name + " was not applied yet",
			Hint: "the next start of the server applies it"})
	}
	return problems
}
