package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"creel/admin"
	"creel/config"
	"creel/receiver"
)

// Reload reads the configuration file again and applies it whole, or keeps
// the old one and says why, in the log too: requests and attempts that began
// under the old one end under it. What only a start can change (listeners, the
// database) is refused. The warnings are those of the new one, of what it leaves
// behind in the database too; they are logged.
func (a *App) Reload(ctx context.Context) (warnings []string, err error) {
	a.reload.Lock()
	defer a.reload.Unlock()
	snapshot, problems, err := a.reloaded(ctx)
	if err != nil {
		a.opt.Log.Error().Err(err).Msg("the new configuration was refused, the old one stays in force")
		return nil, err
	}
	a.warn(problems)
	for _, warning := range problems.Warnings() {
		warnings = append(warnings, warning.String())
	}
	a.opt.Log.Info().Int("sources", len(snapshot.Config.Sources)).Int("rules", len(snapshot.Config.Rules)).
		Int("destinations", len(snapshot.Config.Destinations)).Msg("configuration reloaded")
	return warnings, nil
}

func (a *App) reloaded(ctx context.Context) (*Snapshot, config.Problems, error) {
	if a.opt.Load == nil {
		return nil, nil, refusal{errors.New("the demo has no configuration file to read again")}
	}
	cfg, file, found := a.opt.Load()
	snapshot, problems := Judge(cfg, file, found, a.meaning())
	if err := problems.Err(); err != nil {
		return nil, nil, refusal{err}
	}
	if err := a.sameFrame(cfg.Listen, cfg.Admin.Listen, cfg.Database); err != nil {
		return nil, nil, err
	}
	if err := a.comparable(ctx, snapshot); err != nil {
		return nil, nil, err
	}
	if err := a.migrated(ctx, snapshot); err != nil {
		return nil, nil, err
	}
	if err := a.receiver.Apply(receiver.Settings{KeepHeaders: snapshot.keptHeaders(), TrustedProxies: cfg.TrustedProxies}); err != nil {
		return nil, nil, refusal{err}
	}
	// From here on nothing refuses: the routes were compiled with the rest.
	old := a.snapshot.Swap(snapshot)
	a.tally.Configure(sourceNames(cfg), cfg.DestinationNames())
	if err := a.dispatcher.Configure(snapshot.Routes); err != nil {
		return nil, nil, err
	}
	old.close()
	a.tellAs(snapshot)
	a.store.LimitOwn(time.Duration(cfg.SQL.Timeout))
	behind := leftBehind(ctx, a.store.Reader, snapshot)
	if file != nil {
		behind = file.Locate(behind)
	}
	return snapshot, append(problems, behind...), a.remember(ctx, snapshot)
}

func (a *App) sameFrame(listen, adminListen, database string) error {
	old := a.snapshot.Load().Config
	for _, frame := range []struct{ key, was, is string }{
		{"listen", old.Listen, listen}, {"admin.listen", old.Admin.Listen, adminListen}, {"database", old.Database, database},
	} {
		if frame.was != frame.is {
			return refusal{fmt.Errorf("%s changed from %q to %q, which needs a restart", frame.key, frame.was, frame.is)}
		}
	}
	return nil
}

// refusal is an error that wraps admin.ErrRefused and speaks for itself.
type refusal struct{ error }

func (r refusal) Unwrap() []error { return []error{admin.ErrRefused, r.error} }
