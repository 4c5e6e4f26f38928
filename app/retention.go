package app

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/jobs"
	"creel/store"
)

// KeepTimes are how long what events carried is kept.
func KeepTimes(cfg *config.Config) store.Retention {
	keep := store.Retention{Default: time.Duration(cfg.Retention), Sources: map[string]time.Duration{}}
	for _, s := range cfg.Sources {
		if s.Retention != nil {
			keep.Sources[s.Name] = time.Duration(*s.Retention)
		}
	}
	return keep
}

// purger purges by the configuration in force.
type purger struct{ app *App }

// Purge implements jobs.Purger.
func (p purger) Purge(ctx context.Context, now time.Time) (events int64, more bool, err error) {
	done, more, err := p.app.store.Purge(ctx, now, KeepTimes(p.app.snapshot.Load().Config))
	return done.Events, more, err
}

func (a *App) retention() *jobs.Retention {
	return jobs.NewRetention(jobs.RetentionOptions{Store: purger{a}, Clock: a.opt.Clock, Log: a.opt.Log, Watch: a.watch, Doubt: a.doubt})
}

// PruneAlone purges a database that no server has open.
func PruneAlone(ctx context.Context, cfg *config.Config, now time.Time) (all store.Purged, err error) {
	s, err := store.Open(ctx, store.Options{Path: cfg.Database, Log: zerolog.Nop(), Clock: time.Now})
	if err != nil {
		return all, err
	}
	for more := true; more && err == nil; {
		var done store.Purged
		done, more, err = s.Purge(ctx, now, KeepTimes(cfg))
		all.Events, all.Bytes, all.Kept = all.Events+done.Events, all.Bytes+done.Bytes, all.Kept+done.Kept
	}
	return all, errors.Join(err, s.Close())
}
