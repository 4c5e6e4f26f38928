package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"creel/admin"
	"creel/admin/page"
	"creel/config"
	"creel/event"
	"creel/handlers"
	"creel/jobs"
	"creel/receiver"
	"creel/store"
)

// Options are what an app is made of.
type Options struct {
	Config   *config.Config
	File     *config.File // where problems of Config stand; nil where there is no file
	Load     Loader       // for Reload; nil where there is no file
	Env      config.Environment
	Handlers *handlers.Registry // Go handlers of a custom binary; may be nil
	Log      zerolog.Logger
	Clock    func() time.Time // time.Now when nil
	// Passed is how much time has passed by a clock that can not be set; nil
	// where the times of Clock tell.
	Passed  func() time.Duration
	Version string
	// Sleep waits between requests to senders' lists; for real when nil.
	Sleep func(ctx context.Context, d time.Duration) error
	// AcceptNewIdentity lets sources tell events apart in another way than
	// those that are stored.
	AcceptNewIdentity bool
}

// Loader reads a configuration file anew.
type Loader func() (*config.Config, *config.File, config.Problems)

// App is a running Creel.
type App struct {
	opt        Options
	bodies     *admin.Bodies
	gate       gate
	page       *page.Page
	snapshot   atomic.Pointer[Snapshot]
	reload     sync.Mutex
	store      *store.Store
	receiver   *receiver.Receiver
	worker     *jobs.Worker
	dispatcher *jobs.Dispatcher
	signals    *jobs.Signals
	heartbeat  *jobs.Heartbeat
	tally      *jobs.Tally
	census     *census
	hub        *hub
	watch      *jobs.Watch
	doubt      bool // the clock may be far ahead
	comparing  comparing
	pairings   pairings
	started    time.Time
	stack      stack
	failed     chan error
	stopping   atomic.Bool
	// Listen and AdminListen are the addresses in use, once started.
	Listen, AdminListen string
}

// room is how many accepted events and claimed deliveries may wait in memory
// at once: past it they wait in the file.
const room = 1024

// New compiles the configuration and opens the store. Nothing listens yet.
func New(ctx context.Context, opt Options) (*App, error) {
	if opt.Clock == nil {
		opt.Clock = time.Now
	}
	a := &App{opt: opt, hub: newHub(), failed: make(chan error, 8), started: opt.Clock()}
	snapshot, problems := Judge(opt.Config, opt.File, nil, a.meaning())
	if err := problems.Err(); err != nil {
		return nil, err
	}
	a.snapshot.Store(snapshot)
	s, err := store.Open(ctx, store.Options{Path: opt.Config.Database, Log: opt.Log,
		MinFree: int64(opt.Config.MinFree), Clock: opt.Clock})
	if err != nil {
		return nil, err
	}
	a.store = s
	a.stack.push(func(context.Context) error { return s.Close() })
	a.stack.push(a.noteSeen)
	a.census = newCensus(s.Census)
	a.stack.push(a.census.stop)
	a.stack.push(func(context.Context) error { a.snapshot.Load().close(); return nil })
	if err := errors.Join(a.openBodies(ctx), a.build()); err != nil {
		return nil, errors.Join(err, a.stack.unwind(ctx))
	}
	return a, nil
}

// warn logs what is worth a look in a configuration and stops nothing.
func (a *App) warn(problems config.Problems) {
	for _, warning := range problems.Warnings() {
		a.opt.Log.Warn().Str("problem", warning.String()).Msg("configuration warning")
	}
}

func (a *App) meaning() Meaning {
	return Meaning{Env: a.opt.Env, Handlers: a.opt.Handlers, Panicked: a.panicked, Clock: a.opt.Clock, Version: a.opt.Version,
		Link: a.bodyLink}
}

func (a *App) panicked(p handlers.Panic) {
	a.opt.Log.Error().Str(event.FieldEvent, p.Event.String()).Str(event.FieldRule, p.Rule).
		Str(event.FieldReason, p.Text).Bytes("stack", p.Stack).Msg("a handler panicked")
}

// build makes the rooms and joins them.
func (a *App) build() (err error) {
	snapshot := a.snapshot.Load()
	a.watch = a.newWatch()
	a.tally = jobs.NewTally(jobs.TallyOptions{Store: a.store, Clock: a.opt.Clock, Log: a.opt.Log})
	a.tally.Configure(sourceNames(snapshot.Config), snapshot.Config.DestinationNames())
	a.dispatcher, err = jobs.NewDispatcher(jobs.DispatcherOptions{
		Outbox: witness{a.store, a.hub, a.opt.Clock}, Routes: snapshot.Routes, Clock: a.opt.Clock, Jitter: rand.Float64, Log: a.opt.Log,
		Grace: time.Duration(snapshot.Config.Grace) / 2, Watch: a.watch,
		Tally: a.tally, Hidden: func(source string, p event.Payload) []string { return a.snapshot.Load().redact.Texts(source, p) },
	})
	if err != nil {
		return err
	}
	a.worker = jobs.NewWorker(jobs.WorkerOptions{
		Inbox: witness{a.store, a.hub, a.opt.Clock}, Shipper: a.dispatcher, Clock: a.opt.Clock, Jitter: rand.Float64, Log: a.opt.Log,
		Rules:   func() jobs.Rules { return a.snapshot.Load().Rulebook },
		Policy:  func() jobs.Policy { return a.snapshot.Load().EventPolicy },
		Timeout: func() time.Duration { return time.Duration(a.snapshot.Load().Config.Worker.Timeout) },
		Batch:   snapshot.Config.Worker.Batch, Room: room, Slow: snapshot.Config.Worker.Slow, Tally: a.tally, Watch: a.watch,
	})
	a.store.SetHandoff(a.worker)
	a.buildSignals()
	a.receiver, err = receiver.New(receiver.Options{
		Sources: a.source, Inbox: inbox{a}, Clock: a.opt.Clock, Log: a.opt.Log, Ready: a.store.Healthy,
		Rejected: a.noteRejected, Pairing: pairingMode{a},
		Settings: receiver.Settings{KeepHeaders: snapshot.keptHeaders(), TrustedProxies: snapshot.Config.TrustedProxies},
	})
	return err
}

// Start opens the listeners and starts the loops: listener, intake, loops. A
// connection that comes early waits in the listener.
func (a *App) Start(ctx context.Context) error {
	if err := a.start(ctx); err != nil {
		return errors.Join(err, a.stack.unwind(ctx))
	}
	notify(a.opt.Env, "READY=1")
	return nil
}

func (a *App) start(ctx context.Context) error {
	cfg := a.opt.Config
	intake, err := listen(a.opt.Env, socketName, cfg.Listen)
	if err != nil {
		return err
	}
	a.stack.push(func(context.Context) error { return ignoreClosed(intake.Close()) })
	operator, err := listen(a.opt.Env, adminSocketName, cfg.Admin.Listen)
	if err != nil {
		return err
	}
	a.stack.push(func(context.Context) error { return ignoreClosed(operator.Close()) })
	control, err := admin.Listen(store.SocketPath(cfg.Database))
	if err != nil {
		return err
	}
	a.stack.push(func(context.Context) error {
		_ = control.Close() // serve has closed it, where it came to that
		return os.Remove(store.SocketPath(cfg.Database))
	})
	a.Listen, a.AdminListen = intake.Addr().String(), operator.Addr().String()

	if err := a.comparable(ctx, a.snapshot.Load()); err != nil {
		return err
	}
	if err := a.migrate(ctx); err != nil {
		return err
	}
	if err := a.remember(ctx, a.snapshot.Load()); err != nil {
		return err
	}
	a.opt.AcceptNewIdentity = false // it was asked for this start, not for later reloads
	a.warn(stranded(ctx, a.store.Reader, a.snapshot.Load()))
	if err := a.recover(ctx); err != nil {
		return err
	}
	if err := a.tally.Restore(ctx); err != nil {
		return err
	}
	a.loop("tally", a.tally.Run)
	a.loop("signals", a.signals.Run)
	a.loop("dispatcher", a.dispatcher.Run)
	a.loop("worker", a.worker.Run)
	a.loop("heartbeat", a.heartbeat.Run)
	a.loop("retention", a.retention().Run)
	a.loop("reconcile", a.reconciles().Run)
	front, err := a.openPage(ctx)
	if err != nil {
		return err
	}
	a.serve("admin", receiver.NewServer(front, a.opt.Log), receiver.Listen(operator, adminConnections))
	a.serve("control", &http.Server{Handler: admin.Control(a), ReadHeaderTimeout: headerTimeout}, control)
	a.stack.push(func(context.Context) error { a.hub.close(); return nil })
	a.serve("intake", receiver.NewServer(a.receiver, a.opt.Log), receiver.Listen(intake, cfg.MaxConnections))
	a.stack.push(func(context.Context) error { a.receiver.Stop(); return nil })
	a.tend()
	a.opt.Log.Info().Str("listen", a.Listen).Str("admin_listen", a.AdminListen).
		Str("database", cfg.Database).Str("version", a.opt.Version).Msg("listening")
	return nil
}

const (
	headerTimeout = 5 * time.Second
	// adminConnections bounds those to the page and the API: browsers, programs
	// and a proxy of the owner's need few, and what strangers hold open there
	// takes nothing from senders.
	adminConnections = 256
)

// recover takes back what a dead server had claimed.
func (a *App) recover(ctx context.Context) error {
	if err := a.compareClock(ctx); err != nil {
		return err
	}
	snapshot := a.snapshot.Load()
	recovered, err := a.store.Recover(ctx, a.opt.Clock(), snapshot.reviews)
	if err != nil {
		return fmt.Errorf("take back unfinished work: %w", err)
	}
	if recovered.Events+recovered.Deliveries+recovered.InDoubt > 0 {
		line := a.opt.Log.Warn().Int("events", recovered.Events).Int("deliveries", recovered.Deliveries).Int("in_doubt", recovered.InDoubt)
		if recovered.InDoubt > 0 {
			line = line.Str(event.FieldHint, "creel deliveries --state in_doubt, then creel resolve")
		}
		line.Msg("took back what an earlier server had not finished")
	}
	return nil
}

// loop runs a loop of jobs until the app stops, and waits for its end then.
func (a *App) loop(name string, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	a.stack.push(func(stop context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-stop.Done():
			return fmt.Errorf("stop the %s: %w", name, stop.Err())
		}
	})
}

// serve answers on a listener until the app stops.
func (a *App) serve(name string, server *http.Server, listener net.Listener) {
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.fail(fmt.Errorf("serve %s: %w", name, err))
		}
	}()
	a.stack.push(func(ctx context.Context) error {
		if err := server.Shutdown(ctx); err != nil {
			return errors.Join(fmt.Errorf("stop %s: %w", name, err), server.Close())
		}
		return nil
	})
}

func (a *App) fail(err error) {
	select {
	case a.failed <- err:
	default:
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Failed tells of trouble that the app can not outlive: the caller stops it
// and exits, so that a supervisor starts it again.
func (a *App) Failed() <-chan error { return a.failed }

// Stop ends the app in the order of the house, the last started first: intake,
// loops, attempts, store. ctx bounds how long it waits for what is in flight;
// what does not end within it is given back, or follows on_doubt.
func (a *App) Stop(ctx context.Context) error {
	a.stopping.Store(true)
	notify(a.opt.Env, "STOPPING=1")
	return a.stack.unwind(ctx)
}

// Act does an action of an operator.
func (a *App) Act(ctx context.Context, action event.Action) (event.Action, error) {
	action.At = a.opt.Clock()
	done, err := act(ctx, a.store, a.snapshot.Load().Config, action)
	a.acted(action, done, err)
	return done, err
}

// acted tells of an action that was done, or not.
func (a *App) acted(action, done event.Action, err error) {
	a.dispatcher.Refresh()
	a.tellActed(done)
	line := a.opt.Log.Info()
	if err != nil {
		line = a.opt.Log.Warn().Err(err)
	}
	line.Str(event.FieldAction, string(action.Kind)).Str(event.FieldActor, action.Actor).
		Int(event.FieldCount, done.Done).Msg("operator action")
}
