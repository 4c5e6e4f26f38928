package testkit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ReadyLimit is how long a start may take before a test gives up.
const ReadyLimit = 20 * time.Second

// runLimit is how long a command beside the server may take.
const runLimit = time.Minute

// Process is the real binary, serving a configuration in a folder of its own.
// It can be killed and started again on the same files.
type Process struct {
	Dir string // holds creel.toml and what it names

	args []string
	env  []string
	path string

	mu     sync.Mutex
	run    *run
	stdout Log
	stderr Log
}

// run is one life of the process.
type run struct {
	cmd    *exec.Cmd
	listen chan [2]string // the addresses, once they are logged
	addr   [2]string
	ended  chan struct{}
	exit   Exit
}

// Exit is how a life ended.
type Exit struct {
	Code   int            // -1 where a signal ended it
	Signal syscall.Signal // 0 where it exited by itself
	After  time.Duration  // from the call that asked for the end
}

// NewProcess writes the configuration into a folder of the test and returns
// the process, not started. Env is added to a clean environment.
func NewProcess(t testing.TB, configuration string, env ...string) *Process {
	t.Helper()
	return NewProcessOf(t, Binary(t), configuration, env...)
}

// NewProcessOf is NewProcess for another binary than the product: a custom
// one.
func NewProcessOf(t testing.TB, path, configuration string, env ...string) *Process {
	t.Helper()
	return &Process{
		Dir:  Folder(t, configuration),
		path: path,
		args: []string{"serve", "-c", "creel.toml"},
		env:  append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...),
	}
}

// Setenv adds a variable to the environment of the next start.
func (p *Process) Setenv(name, value string) { p.env = append(p.env, name+"="+value) }

// Folder makes a folder of the test with the configuration as creel.toml.
func Folder(t testing.TB, configuration string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "creel.toml"), []byte(configuration), 0o600); err != nil {
		t.Fatalf("write the configuration: %v", err)
	}
	return dir
}

// Start starts the process and waits until it listens.
func (p *Process) Start(t testing.TB) {
	t.Helper()
	p.Launch(t)
	if err := p.Ready(ReadyLimit); err != nil {
		t.Fatalf("%v\nstdout: %s\nstderr: %s", err, p.Stdout(), p.Stderr())
	}
}

// Launch starts the process and does not wait.
func (p *Process) Launch(t testing.TB) {
	t.Helper()
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir, cmd.Env = p.Dir, p.env
	r := &run{cmd: cmd, listen: make(chan [2]string, 1), ended: make(chan struct{})}
	var pipes sync.WaitGroup
	follow := func(pipe func() (io.ReadCloser, error), into *Log) {
		from, err := pipe()
		if err != nil {
			t.Fatalf("start the binary: %v", err)
		}
		pipes.Add(1)
		go func() { defer pipes.Done(); r.follow(from, into) }()
	}
	follow(cmd.StdoutPipe, &p.stdout)
	follow(cmd.StderrPipe, &p.stderr)
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the binary: %v", err)
	}
	go func() {
		pipes.Wait()
		r.exit = exitOf(cmd.Wait())
		close(r.ended)
	}()
	p.mu.Lock()
	p.run = r
	p.mu.Unlock()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-r.ended })
}

// Ready waits until the process has logged its addresses.
func (p *Process) Ready(limit time.Duration) error {
	r := p.current()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	select {
	case addr := <-r.listen:
		p.mu.Lock()
		r.addr = addr
		p.mu.Unlock()
		return nil
	case <-r.ended:
		return fmt.Errorf("the binary ended before it listened, with %+v", r.exit)
	case <-deadline.C:
		return fmt.Errorf("the binary did not listen within %v", limit)
	}
}

// URL is the address of the senders' listener with a path; AdminURL that of
// the operator's.
func (p *Process) URL(path string) string      { return "http://" + p.address(0) + path }
func (p *Process) AdminURL(path string) string { return "http://" + p.address(1) + path }

func (p *Process) address(i int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run.addr[i]
}

// PID is the process id of the current life.
func (p *Process) PID() int { return p.current().cmd.Process.Pid }

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() Exit { return p.signal(syscall.SIGKILL) }

// Terminate sends SIGTERM and waits until the process is gone; a test that
// wants a bound looks at Exit.After.
func (p *Process) Terminate() Exit { return p.signal(syscall.SIGTERM) }

// Signal sends a signal and does not wait.
func (p *Process) Signal(s syscall.Signal) error { return p.current().cmd.Process.Signal(s) }

// Wait waits for the end of the current life.
func (p *Process) Wait() Exit {
	r := p.current()
	<-r.ended
	return r.exit
}

// Ended is closed when the current life is over.
func (p *Process) Ended() <-chan struct{} { return p.current().ended }

// Stdout and Stderr are what all lives have written so far.
func (p *Process) Stdout() []byte { return p.stdout.Bytes() }
func (p *Process) Stderr() []byte { return p.stderr.Bytes() }

// Run runs another command of the binary in the folder of the process and
// returns its exit code and outputs.
func (p *Process) Run(t testing.TB, args ...string) (code int, stdout, stderr []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir, cmd.Env = p.Dir, p.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	exit := exitOf(cmd.Run())
	if ctx.Err() != nil {
		t.Errorf("%v did not end within %v", args, runLimit)
	}
	return exit.Code, out.Bytes(), errs.Bytes()
}

func (p *Process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

func (p *Process) signal(s syscall.Signal) Exit {
	r := p.current()
	asked := time.Now()
	_ = r.cmd.Process.Signal(s)
	<-r.ended
	exit := r.exit
	exit.After = time.Since(asked)
	return exit
}

// follow keeps what the process writes and looks for the line that tells the
// addresses.
func (r *run) follow(from io.Reader, into *Log) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		_, _ = into.Write(line)
		var told struct {
			Message string `json:"message"`
			Listen  string `json:"listen"`
			Admin   string `json:"admin_listen"`
		}
		if json.Unmarshal(line, &told) == nil && told.Message == "listening" {
			select {
			case r.listen <- [2]string{told.Listen, told.Admin}:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

func exitOf(err error) Exit {
	if err == nil {
		return Exit{}
	}
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return Exit{Code: -1}
	}
	exit := Exit{Code: ended.ExitCode()}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = status.Signal()
	}
	return exit
}
