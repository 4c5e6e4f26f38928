package deliver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"creel/event"
)

const (
	// endGrace is how long a command has to end after SIGTERM.
	endGrace = 2 * time.Second
	// groupLook is how often we look whether the group of a command is gone.
	groupLook = 10 * time.Millisecond
	// pipeGrace is how long its pipes are read and written after it has ended:
	// what it left running may hold them for ever.
	pipeGrace = 500 * time.Millisecond
	// killGrace is how long an ended command is waited for: one that hangs in
	// the kernel does not die.
	killGrace = 5 * time.Second
)

// errAlert is about an alert to a destination that was no command when it was
// written.
var errAlert = errors.New("it is an alert, and commands get events")

var errUnkillable = errors.New("did not end when it was killed: it hangs in the kernel, on a disk or a network file system")

// ran is a run of a command with what it said.
type ran struct {
	Exit
	output []byte
}

// perform runs the command once.
func (d *Command) perform(ctx context.Context, s *event.Shipment) ran {
	if s.Alert != 0 {
		return ran{Exit: Exit{Err: errAlert, Unsendable: true}}
	}
	body, err := partOf(s.Payload)
	if err != nil {
		return ran{Exit: Exit{Err: err, Unsendable: true}}
	}
	file := ""
	if d.asFile {
		if file, err = payloadFile(body); err != nil {
			return ran{Exit: Exit{Err: err}}
		}
		defer os.Remove(file) // it is ours alone; what can not be removed is told by the disk
	}
	env, err := d.environment(s, file)
	if err != nil {
		return ran{Exit: Exit{Err: err, Unsendable: true}}
	}
	if d.asFile {
		body = nil
	}
	if err := ctx.Err(); err != nil {
		return ran{Exit: Exit{Err: errors.New("interrupted by the stop of the server")}}
	}
	p, err := d.start(env, body)
	if err != nil {
		return ran{Exit: Exit{Err: d.startError(err), Unsendable: errors.Is(err, syscall.E2BIG)}}
	}
	return p.wait(ctx, d.timeout)
}

// payloadFile writes the body where only our user can read it.
func payloadFile(body []byte) (string, error) {
	f, err := os.CreateTemp("", "creel-payload-*") // mode 0600
	if err != nil {
		return "", fmt.Errorf("no file for the body: %w", err)
	}
	_, err = f.Write(body)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("no file for the body: %w", err)
	}
	return f.Name(), nil
}

// process is a command that runs.
type process struct {
	cmd    *exec.Cmd
	ended  chan error // its end, once
	input  *os.File   // our end of its standard input
	fed    chan struct{}
	output *os.File // our end of its output
	heard  chan []byte
}

// start starts the program in a session of its own, so that it has no terminal
// and can be ended with all that it starts. Its files are plain pipes of ours:
// waiting for its end then is not waiting for theirs.
func (d *Command) start(env []string, body []byte) (*process, error) {
	input, feed, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	defer input.Close()
	listen, output, err := os.Pipe()
	if err != nil {
		_ = feed.Close()
		return nil, fmt.Errorf("pipe: %w", err)
	}
	defer output.Close()
	p := &process{
		cmd: &exec.Cmd{Path: d.argv[0], Args: d.argv, Env: env, Dir: d.folder, Stdin: input, Stdout: output, Stderr: output,
			SysProcAttr: &syscall.SysProcAttr{Setsid: true}},
		ended: make(chan error, 1), input: feed, fed: make(chan struct{}), output: listen, heard: make(chan []byte, 1),
	}
	if err := p.cmd.Start(); err != nil {
		_, _ = feed.Close(), listen.Close()
		return nil, err
	}
	go func() { p.ended <- p.cmd.Wait() }()
	go func() {
		defer close(p.fed)
		_, _ = feed.Write(body) // a command need not read all of it, or any
		_ = feed.Close()
	}()
	go func() { p.heard <- listenTo(listen) }()
	return p, nil
}

// listenTo keeps the beginning of what a command says and reads the rest, so
// that it is never blocked by it.
func listenTo(output io.Reader) []byte {
	kept := make([]byte, mostKept)
	n, err := io.ReadFull(output, kept)
	if err == nil {
		_, _ = io.Copy(io.Discard, output)
	}
	return kept[:n]
}

// wait waits for the end of the command, and brings it about when its time is
// over or the server stops.
func (p *process) wait(ctx context.Context, timeout time.Duration) ran {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var cause error
	select {
	case <-p.ended:
	case <-timer.C:
		cause = fmt.Errorf("did not end within %s and was ended", timeout)
	case <-ctx.Done():
		cause = errors.New("was ended by the stop of the server")
	}
	if cause != nil {
		select {
		case <-p.ended: // in the same moment
			cause = nil
		default:
			if !p.end() {
				cause = errUnkillable
			}
		}
	}
	out := ran{Exit: Exit{Started: true, Err: cause}, output: p.close()}
	if cause != nil {
		return out
	}
	out.Code = p.cmd.ProcessState.ExitCode()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		out.Code, out.Err = 0, fmt.Errorf("was ended by the signal %q", status.Signal())
	}
	return out
}

// end ends the command and all that it started in its group: first politely.
// While a process of the group is there, no other group can get its number.
// false says that the command itself is still there.
func (p *process) end() bool {
	group := -p.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	ended := false
	for deadline := time.Now().Add(endGrace); time.Now().Before(deadline); {
		select {
		case <-p.ended:
			ended = true
		case <-time.After(groupLook):
		}
		if ended && syscall.Kill(group, 0) != nil {
			return true
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	if ended {
		return true
	}
	select {
	case <-p.ended:
		return true
	case <-time.After(killGrace):
		return false
	}
}

// close ends the feeding and the listening, and returns what was heard.
func (p *process) close() []byte {
	deadline := time.Now().Add(pipeGrace)
	_ = p.input.SetWriteDeadline(deadline)
	_ = p.output.SetReadDeadline(deadline)
	<-p.fed
	heard := <-p.heard
	_ = p.output.Close()
	return heard
}
