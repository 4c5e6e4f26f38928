package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"creel/admin"
	"creel/receiver"
)

// Reload reads the configuration file again and applies it whole, or keeps
// the old one and says why, in the log too: requests and attempts that began
// under the old one end under it. What only a start can change (listeners, the
// database) is refused.
func (a *App) Reload(ctx context.Context) error {
	a.reload.Lock()
	defer a.reload.Unlock()
	snapshot, err := a.reloaded(ctx)
	if err != nil {
		a.opt.Log.Error().Err(err).Msg("the new configuration was refused, the old one stays in force")
		return err
	}
	a.opt.Log.Info().Int("sources", len(snapshot.Config.Sources)).Int("rules", len(snapshot.Config.Rules)).
		Int("destinations", len(snapshot.Config.Destinations)).Msg("configuration reloaded")
	return nil
}

func (a *App) reloaded(ctx context.Context) (*Snapshot, error) {
	if a.opt.Load == nil {
		return nil, refusal{errors.New("the demo has no configuration file to read again")}
	}
	cfg, file, found := a.opt.Load()
	snapshot, problems := Judge(cfg, file, found, a.meaning())
	if err := problems.Err(); err != nil {
		return nil, refusal{err}
	}
	if err := a.sameFrame(cfg.Listen, cfg.Admin.Listen, cfg.Database); err != nil {
		return nil, err
	}
	if err := a.comparable(ctx, snapshot); err != nil {
		return nil, err
	}
	if err := a.migrated(ctx, snapshot); err != nil {
		return nil, err
	}
	if err := a.receiver.Apply(receiver.Settings{KeepHeaders: snapshot.keptHeaders(), TrustedProxies: cfg.TrustedProxies}); err != nil {
		return nil, refusal{err}
	}
	// From here on nothing refuses: the routes were compiled with the rest.
	old := a.snapshot.Swap(snapshot)
	a.tally.Configure(sourceNames(cfg), cfg.DestinationNames())
	if err := a.dispatcher.Configure(snapshot.Routes); err != nil {
		return nil, err
	}
	old.close()
	a.tellAs(snapshot)
	a.store.LimitOwn(time.Duration(cfg.SQL.Timeout))
	a.warn(append(problems, stranded(ctx, a.store.Reader, snapshot)...))
	return snapshot, a.remember(ctx, snapshot)
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
