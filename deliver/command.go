package deliver

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"creel/config"
	"creel/event"
)

// Defaults of a command, where its configuration is silent: those of the
// configuration's own defaults.
const (
	defaultCommandTimeout  = time.Minute
	defaultCommandInFlight = 2
	// safePath is where a command finds others that it names without a path.
	safePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Command makes attempts by running a program of the owner's. It is safe for
// concurrent use.
type Command struct {
	limits
	mask
	argv    []string
	folder  string // where it runs
	own     []string
	asFile  bool // the body is in a file instead of on standard input
	timeout time.Duration
	clock   func() time.Time
}

// NewCommand compiles the configuration of a destination that is a command.
// prefix is the key path of its table. With a fault among the problems the
// command is nil.
func NewCommand(name string, cfg config.Destination, prefix string, opt Options) (*Command, config.Problems) {
	if opt.Clock == nil {
		return nil, config.Problems{{Path: prefix, Message: errNoClock.Error()}}
	}
	c := compiler{prefix: prefix, env: opt.Env}
	d := &Command{
		limits: limits{name: name, rate: float64(cfg.Rate), inFlight: defaultCommandInFlight, review: cfg.OnDoubt != "retry"},
		argv:   slices.Clone(cfg.Command),
		folder: "/",
		asFile: cfg.Payload == "file",
		clock:  opt.Clock,
	}
	if cfg.MaxInFlight != 0 {
		d.inFlight = c.inFlight(cfg.MaxInFlight)
	}
	d.timeout = c.duration("timeout", cfg.Timeout, defaultCommandTimeout, 24*time.Hour)
	c.program(cfg.Command)
	if cfg.WorkingFolder != "" {
		d.folder = cfg.WorkingFolder
		c.folder("working_folder", cfg.WorkingFolder)
	}
	c.variables(d, cfg.Env)
	if len(c.problems.Faults()) > 0 {
		return nil, c.problems
	}
	return d, c.problems
}

// missing reports what is not there on this machine. A command line tool that
// needs no destination may go on.
func (c *compiler) missing(key, message, hint string) {
	c.problems = append(c.problems, config.Problem{Path: c.prefix + "." + key, Message: message, Hint: hint, Unresolved: true})
}

// program checks that the program is there and may be run.
func (c *compiler) program(argv []string) {
	if len(argv) == 0 || !filepath.IsAbs(argv[0]) {
		c.fault("command", "does not begin with the absolute path of a program", `write it as command = ["/usr/local/bin/print-label"]`)
		return
	}
	key, name := config.Item("command", 0), argv[0]
	about, err := os.Stat(name)
	switch {
	case err != nil:
		c.missing(key, "the program can not be found: "+reasonOf(err), "install "+name+", or correct the path; it has to be in the container where creel runs in one")
	case !about.Mode().IsRegular():
		c.missing(key, "it is not a file", "name the program itself")
	case about.Mode().Perm()&0o111 == 0 || syscall.Access(name, accessExecute) != nil:
		c.missing(key, fmt.Sprintf("user id %d may not execute it", os.Getuid()), "chmod +x "+name)
	case about.Mode().Perm()&0o002 != 0:
		c.warn(key, "everybody on this machine can change the program", "chmod o-w "+name)
	}
}

// Modes of access(2).
const (
	accessExecute = 1
	accessWrite   = 2
)

func (c *compiler) folder(key, name string) {
	about, err := os.Stat(name)
	switch {
	case err != nil:
		c.missing(key, "the folder can not be found: "+reasonOf(err), "make it: mkdir -p "+name)
	case !about.IsDir():
		c.missing(key, "it is not a folder", "name a folder")
	}
}

// reasonOf is an error of the file system without the path in it.
func reasonOf(err error) string {
	if e, ok := err.(*fs.PathError); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// variables takes the destination's own environment.
func (c *compiler) variables(d *Command, env map[string]config.Secret) {
	path := "PATH=" + safePath
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		key, secret := config.Join("env", name), env[name]
		plain, ok := c.resolve(key, secret)
		switch {
		case !ok:
			continue
		case strings.IndexByte(string(plain), 0) >= 0:
			c.fault(key, "the value has a NUL character, which no variable can carry", "remove it")
			continue
		case name == "PATH":
			path = "PATH=" + string(plain)
			continue
		}
		d.own = append(d.own, name+"="+string(plain))
		if !secret.Literal() {
			d.credential(string(plain))
		}
	}
	d.own = append(d.own, path)
}

// String is the program as it may be shown: without its arguments.
func (d *Command) String() string { return d.argv[0] }

// Attempt runs the program once and waits for its end, at most the
// destination's timeout. It never returns an error of its own: what went wrong
// is in the result.
func (d *Command) Attempt(ctx context.Context, s event.Shipment, now time.Time) Result {
	began := d.clock()
	ran := d.perform(ctx, &s)
	took := max(d.clock().Sub(began), 0)
	result := Result{
		Attempt: event.Attempt{
			Delivery: s.ID, Run: s.Run, Number: s.Tries, Spent: !s.Probe, Start: now, Duration: took,
			Status:  ran.Code,
			Outcome: ClassifyExit(ran.Exit),
			Answer:  d.shown(ran.output),
		},
		Wrote: ran.Started,
	}
	if result.Attempt.Outcome != event.OK {
		result.Attempt.Error = printable(d.masked(strings.ReplaceAll(d.told(ran.Exit), "\n", " ")), mostError)
	}
	return result
}

// shown is what is kept of the output. Where that is its beginning only, a
// secret may be cut off at the end.
func (d *Command) shown(output []byte) string {
	if len(output) < mostKept {
		return printable(d.masked(string(output)), mostKept)
	}
	return printable(d.maskedCut(string(output)), mostKept)
}

// told says why a run failed.
func (d *Command) told(r Exit) string {
	program := filepath.Base(d.argv[0])
	switch {
	case r.Unsendable:
		return "the command can not be run: " + r.Err.Error()
	case !r.Started:
		return fmt.Sprintf("%s was not started: %s", program, r.Err.Error())
	case r.Err != nil:
		return fmt.Sprintf("%s %s; what it did until then is not known", program, r.Err.Error())
	}
	return program + " ended with exit code " + strconv.Itoa(r.Code)
}
