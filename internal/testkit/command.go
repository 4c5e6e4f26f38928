package testkit

import (
	"os/exec"
	"syscall"
	"testing"
)

// Command is a command of the binary that runs beside the server, and can be
// killed.
type Command struct {
	cmd    *exec.Cmd
	stdout Log
	stderr Log
	ended  chan struct{}
	exit   Exit
}

// Begin starts another command of the binary in the folder of the process and
// does not wait for it. It ends with the test at the latest.
func (p *Process) Begin(t testing.TB, args ...string) *Command {
	t.Helper()
	c := &Command{cmd: exec.Command(p.path, args...), ended: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env = p.Dir, p.env
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	if err := c.cmd.Start(); err != nil {
		t.Fatalf("start creel %v: %v", args, err)
	}
	go func() {
		c.exit = exitOf(c.cmd.Wait())
		close(c.ended)
	}()
	t.Cleanup(func() { c.Kill() })
	return c
}

// Kill ends the command with SIGKILL, where it still runs, and waits until it
// is gone.
func (c *Command) Kill() Exit {
	_ = c.cmd.Process.Kill()
	return c.Wait()
}

// Signal sends it a signal.
func (c *Command) Signal(s syscall.Signal) error { return c.cmd.Process.Signal(s) }

// Wait waits for the end of the command.
func (c *Command) Wait() Exit {
	<-c.ended
	return c.exit
}

// Ended is closed when the command is over.
func (c *Command) Ended() <-chan struct{} { return c.ended }

// Stdout and Stderr are what it has written so far.
func (c *Command) Stdout() string { return c.stdout.String() }
func (c *Command) Stderr() string { return c.stderr.String() }
