package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"creel/admin"
	"creel/config"
	"creel/event"
	"creel/source"
)

// maxPairing is how long a pairing mode is open at most: while it is, whoever
// knows the URL can hand over a secret.
const maxPairing = time.Hour

// pairings are the pairing modes that are open. Each ends with the first
// secret, or when its operator waits no longer.
type pairings struct {
	count atomic.Int32
	mu    sync.Mutex
	open  map[string]*pairing
}

// pairing is one that is open.
type pairing struct {
	file  string        // where the secret goes; "" for nowhere
	fresh bool          // the file must not be there
	taken chan handover // one place
}

// handover is what came.
type handover struct {
	offer source.Offer
	peer  string
	err   error
}

// pairingMode is what the receiver sees of them.
type pairingMode struct{ *App }

// Open implements receiver.Pairing.
func (a pairingMode) Open(name string) bool {
	if a.pairings.count.Load() == 0 {
		return false
	}
	a.pairings.mu.Lock()
	defer a.pairings.mu.Unlock()
	return a.pairings.open[name] != nil
}

// Take implements receiver.Pairing. The secret is on disk before the sender
// has its answer: it hands it over only once.
func (a pairingMode) Take(name string, request *source.Request, peer string) (*source.Answer, error) {
	src := a.snapshot.Load().Sources[name]
	if src == nil {
		return nil, nil
	}
	offer, ok, err := src.Offer(request)
	if !ok {
		return nil, nil
	}
	a.pairings.mu.Lock()
	defer a.pairings.mu.Unlock()
	p := a.pairings.open[name]
	if p == nil {
		return nil, nil // another request was first
	}
	if err != nil {
		a.opt.Log.Warn().Str(event.FieldSource, name).Str(event.FieldPeer, peer).AnErr(event.FieldReason, err).
			Msg("what a sender handed over was not taken")
		return nil, nil // the pairing goes on: it may have been anybody
	}
	if p.file != "" {
		err = writeSecret(p.file, offer.Secret, p.fresh)
	}
	a.pairings.close(name)
	p.taken <- handover{offer, peer, err}
	if err != nil {
		return nil, err
	}
	return &offer.Answer, nil
}

// close ends a pairing, with mu held.
func (p *pairings) close(name string) {
	if p.open[name] != nil {
		delete(p.open, name)
		p.count.Add(-1)
	}
}

// Pair implements admin.Pairing.
func (a *App) Pair(ctx context.Context, ask admin.PairRequest) (admin.Paired, error) {
	p, err := a.beginPairing(ctx, ask)
	if err != nil {
		return admin.Paired{}, err
	}
	defer func() {
		a.pairings.mu.Lock()
		defer a.pairings.mu.Unlock()
		if a.pairings.open[ask.Source] == p {
			a.pairings.close(ask.Source)
			a.opt.Log.Info().Str(event.FieldSource, ask.Source).Msg("pairing mode is closed, nothing was taken")
		}
	}()
	wait := min(time.Duration(ask.Seconds)*time.Second, maxPairing)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var got handover
	select {
	case got = <-p.taken:
	case <-timer.C:
		return admin.Paired{}, refusal{fmt.Errorf("the sender of %q handed nothing over within %s; the pairing mode is closed", ask.Source, wait)}
	case <-a.hub.closed:
		return admin.Paired{}, refusal{errStopping}
	case <-ctx.Done():
		return admin.Paired{}, fmt.Errorf("the pairing mode of %q is closed: %w", ask.Source, context.Cause(ctx))
	}
	if got.err != nil {
		return admin.Paired{}, refusal{fmt.Errorf("the secret of %q came and could not be kept, so the sender was told to come again: %w", ask.Source, got.err)}
	}
	return a.endPairing(context.WithoutCancel(ctx), ask, p, got)
}

// beginPairing finds where the secret of a source goes, writes the audit row
// and opens the pairing.
func (a *App) beginPairing(ctx context.Context, ask admin.PairRequest) (*pairing, error) {
	snapshot := a.snapshot.Load()
	src := snapshot.Sources[ask.Source]
	i := slices.IndexFunc(snapshot.Config.Sources, func(s config.Source) bool { return s.Name == ask.Source })
	switch {
	case src == nil || i < 0:
		return nil, fmt.Errorf("%w: the configuration in force has no source %q", event.ErrNotFound, ask.Source)
	case !src.Pairs():
		return nil, refusal{fmt.Errorf("the sender of %q hands no secret over in a request: its secret belongs into the configuration", ask.Source)}
	case ask.Seconds <= 0:
		return nil, refusal{errors.New("a pairing mode is open for a time")}
	}
	p := &pairing{taken: make(chan handover, 1)}
	if err := p.place(&snapshot.Config.Sources[i], src, ask.Replace); err != nil {
		return nil, err
	}
	action := event.Action{Kind: event.ActionPair, Actor: ask.Actor, Reason: ask.Reason, Target: ask.Source}
	if _, err := a.store.Note(ctx, a.opt.Clock(), action); err != nil {
		return nil, err
	}
	a.pairings.mu.Lock()
	defer a.pairings.mu.Unlock()
	if a.pairings.open[ask.Source] != nil {
		return nil, refusal{fmt.Errorf("somebody waits for the secret of %q already", ask.Source)}
	}
	if a.pairings.open == nil {
		a.pairings.open = map[string]*pairing{}
	}
	a.pairings.open[ask.Source] = p
	a.pairings.count.Add(1)
	a.opt.Log.Warn().Str(event.FieldSource, ask.Source).Str(event.FieldActor, ask.Actor).
		Msg("pairing mode is open: the next secret that is handed over is taken")
	return p, nil
}

// place finds the file for the secret: the first of the source's that is not
// there yet. With replace it is the first that there is.
func (p *pairing) place(cfg *config.Source, src *source.Source, replace bool) error {
	first := ""
	for _, secret := range cfg.Secrets {
		name, ok := secret.File()
		if !ok {
			continue
		}
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			p.file, p.fresh = name, true
			return p.writable()
		}
		if first == "" {
			first = name
		}
	}
	if replace {
		p.file = first
		return p.writable()
	}
	if len(cfg.Secrets) > 0 && src.Secrets() > 0 {
		return refusal{fmt.Errorf(`%q has its secret: --replace takes another in its place, or a further "file:PATH" in its secrets takes one more`, src.Name())}
	}
	return nil
}

// writable finds out before a sender hands its secret over whether it could be
// kept.
func (p *pairing) writable() error {
	if p.file == "" {
		return nil
	}
	probe, err := os.CreateTemp(filepath.Dir(p.file), ".creel-pair-*")
	if err != nil {
		return refusal{fmt.Errorf("the secret could not be kept in %s: %w", p.file, err)}
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// endPairing puts a secret that is kept into force and writes it into the audit
// trail that it came.
func (a *App) endPairing(ctx context.Context, ask admin.PairRequest, p *pairing, got handover) (admin.Paired, error) {
	paired := admin.Paired{Source: ask.Source, At: a.opt.Clock().UTC(), Peer: got.peer, File: p.file}
	if p.file == "" || got.offer.Show {
		paired.Secret = string(got.offer.Secret)
	}
	if p.file != "" {
		if err := a.renew(ask.Source); err != nil {
			return paired, refusal{fmt.Errorf("the secret is in %s and not in force: %w", p.file, err)}
		}
		paired.InForce = true
	}
	a.opt.Log.Info().Str(event.FieldSource, ask.Source).Str(event.FieldPeer, got.peer).Bool("in_force", paired.InForce).
		Msg("a sender handed its secret over")
	action, err := a.store.Note(ctx, a.opt.Clock(), event.Action{Kind: event.ActionPaired, Actor: ask.Actor, Reason: ask.Reason,
		Target: ask.Source + ", by " + got.peer})
	if err != nil {
		// The secret is taken: its operator has to learn it, whatever the trail says.
		a.opt.Log.Error().Err(err).Str(event.FieldSource, ask.Source).Msg("a pairing is not in the audit trail")
	}
	paired.Action = action.ID
	return paired, nil
}

// renew compiles one source of the configuration in force again, with the
// secrets that are there now.
func (a *App) renew(name string) error {
	a.reload.Lock()
	defer a.reload.Unlock()
	old := a.snapshot.Load()
	i := slices.IndexFunc(old.Config.Sources, func(s config.Source) bool { return s.Name == name })
	if i < 0 {
		return fmt.Errorf("the source %q is gone", name)
	}
	compiled, problems := CompileSource(old.Config, i, a.opt.Env)
	if err := problems.Err(); err != nil {
		return err
	}
	next := *old
	next.Sources = maps.Clone(old.Sources)
	next.Sources[name] = compiled
	a.snapshot.Store(&next)
	return nil
}

// writeSecret writes a secret for its owner alone, whole and synced or not at
// all. The line end is the one that reading it takes off.
func writeSecret(name string, secret []byte, fresh bool) (err error) {
	folder := filepath.Dir(name)
	file, err := os.CreateTemp(folder, ".creel-pair-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	defer func() {
		_ = os.Remove(file.Name()) // gone, where it was renamed
	}()
	_, err = file.Write(append(slices.Clone(secret), '\n'))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	if fresh {
		err = os.Link(file.Name(), name) // fails where the file is there by now
	} else {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	parent, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	if err := errors.Join(parent.Sync(), parent.Close()); err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	return nil
}
