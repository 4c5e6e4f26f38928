package app

import (
	"context"
	"fmt"

	"creel/admin"
	"creel/receiver"
)

// Reload reads the configuration file again and applies it whole, or keeps
// the old one: requests and attempts that began under the old one end under
// it. What only a start can change (listeners, the database) is refused.
func (a *App) Reload(ctx context.Context) error {
	a.reload.Lock()
	defer a.reload.Unlock()
	if a.opt.Load == nil {
		return fmt.Errorf("%w: the demo has no configuration file to read again", admin.ErrRefused)
	}
	cfg, problems := a.opt.Load()
	if err := problems.Err(); err != nil {
		return fmt.Errorf("%w: %w", admin.ErrRefused, err)
	}
	if err := a.sameFrame(cfg.Listen, cfg.Admin.Listen, cfg.Database); err != nil {
		return err
	}
	snapshot, problems := Compile(cfg, a.meaning())
	if err := problems.Err(); err != nil {
		return fmt.Errorf("%w: %w", admin.ErrRefused, err)
	}
	if err := a.accept(ctx, snapshot); err != nil {
		return err
	}
	if err := a.receiver.Apply(receiver.Settings{KeepHeaders: snapshot.keptHeaders(), TrustedProxies: cfg.TrustedProxies}); err != nil {
		return fmt.Errorf("%w: %w", admin.ErrRefused, err)
	}
	a.snapshot.Store(snapshot)
	if err := a.dispatcher.Configure(snapshot.Routes); err != nil {
		return err
	}
	a.opt.Log.Info().Int("sources", len(cfg.Sources)).Int("rules", len(cfg.Rules)).
		Int("destinations", len(cfg.Destinations)).Msg("configuration reloaded")
	return nil
}

func (a *App) sameFrame(listen, adminListen, database string) error {
	old := a.snapshot.Load().Config
	for _, frame := range []struct{ key, was, is string }{
		{"listen", old.Listen, listen}, {"admin.listen", old.Admin.Listen, adminListen}, {"database", old.Database, database},
	} {
		if frame.was != frame.is {
			return fmt.Errorf("%w: %s changed from %q to %q, which needs a restart", admin.ErrRefused, frame.key, frame.was, frame.is)
		}
	}
	return nil
}
