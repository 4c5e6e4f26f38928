package app

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"creel/admin"
	"creel/config"
	"creel/deliver"
	"creel/event"
)

// bodyKey names the setting with the key that addresses of bodies are signed
// with.
const bodyKey = "body_key"

// openBodies makes what hands out the bodies that envelopes stand for. Its key
// stays with the database, so that an address outlives a restart.
func (a *App) openBodies(ctx context.Context) error {
	key, err := a.store.RandomKey(ctx, a.opt.Clock(), bodyKey)
	if err != nil {
		return fmt.Errorf("sign the addresses of bodies: %w", err)
	}
	a.bodies = admin.NewBodies(key, a.store.Work, a.opt.Clock)
	return nil
}

// bodyLink is the whole address of a body, as an app reaches it.
func (a *App) bodyLink(seq int64, key event.Key, until time.Time) string {
	base := strings.TrimSuffix(a.snapshot.Load().Config.Admin.PublicURL, "/")
	if base == "" {
		base = "http://" + reachable(a.AdminListen)
	}
	return base + a.bodies.Path(seq, key, until)
}

// reachable is an address that a client on this machine can dial for one that a
// listener has.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return listen
}

// tenant is the owner's own name for an account of a source, "" where there is
// no map of them: as rules have it.
func (s *Snapshot) tenant(source, account string) string {
	for i := range s.Config.Sources {
		if s.Config.Sources[i].Name == source {
			return s.Config.Sources[i].Accounts[account]
		}
	}
	return ""
}

// unreachable warns where the addresses in envelopes lead an app nowhere.
func (s *Snapshot) unreachable() config.Problems {
	base := reachable(s.Config.Admin.Listen)
	host, _, _ := net.SplitHostPort(base)
	if ip := net.ParseIP(host); s.Config.Admin.PublicURL != "" || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil
	}
	var problems config.Problems
	for i := range s.Routes {
		d, ok := s.Routes[i].Carrier.(*deliver.Destination)
		if !ok || !d.Wraps() || d.Local() {
			continue
		}
		problems = append(problems, config.Problem{Warning: true, Path: config.Join(config.Join("destination", d.Name()), "max_body"),
			Message: fmt.Sprintf("large bodies would have to be fetched from http://%s, which only this machine reaches", base),
			Hint:    "set public_url in [admin] to how the app reaches that listener"})
	}
	return problems
}
