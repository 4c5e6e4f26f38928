package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// program is a server under test as a process of its own.
type program struct {
	cmd    *exec.Cmd
	listen string // of the intake
	admin  string // of the page, the API and the metrics
	ended  chan struct{}
	err    error
	log    *os.File
}

// startLimit is how long a server may take to listen.
const startLimit = 60 * time.Second

// begin starts a server and waits for the line that tells its address. What
// it writes goes to a file beside the database.
func begin(ctx context.Context, dir string, env []string, name string, args ...string) (*program, error) {
	p := &program{cmd: exec.CommandContext(ctx, name, args...), ended: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), env...)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, fmt.Errorf("make the log: %w", err)
	}
	p.log = log
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	p.cmd.Stdout, p.cmd.Stderr = write, write
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	_ = write.Close()
	listen := make(chan [2]string, 1)
	go follow(read, log, listen)
	go func() { p.err = p.cmd.Wait(); close(p.ended) }()
	deadline := time.NewTimer(startLimit)
	defer deadline.Stop()
	select {
	case at := <-listen:
		p.listen, p.admin = at[0], at[1]
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%s ended before it listened: %w, see %s", name, p.err, log.Name())
	case <-deadline.C:
		p.kill()
		return nil, fmt.Errorf("%s did not listen, see %s", name, log.Name())
	}
}

func follow(from io.ReadCloser, log *os.File, listen chan<- [2]string) {
	defer func() { _ = from.Close() }()
	lines := bufio.NewReaderSize(from, 64<<10)
	told := false
	for !told {
		line, err := lines.ReadBytes('\n')
		_, _ = log.Write(line)
		var what struct {
			Message string `json:"message"`
			Listen  string `json:"listen"`
			Admin   string `json:"admin_listen"`
		}
		if json.Unmarshal(line, &what) == nil && what.Message == "listening" {
			listen <- [2]string{what.Listen, what.Admin}
			told = true
		}
		if err != nil {
			return
		}
	}
	_, _ = io.Copy(log, lines)
}

func (p *program) url() string { return "http://" + p.listen + "/in/load" }

func (p *program) pid() int { return p.cmd.Process.Pid }

// stop ends the server in its own way; kill does not ask.
func (p *program) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.ended
	_ = p.log.Close()
	return p.err
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.log.Close()
}

// freePort is a port that was free a moment ago.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

// firstAnswer starts a server on a known address and measures from the start
// of its process to its first answer.
func firstAnswer(ctx context.Context, dir string, env []string, addr, name string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }()
	for time.Since(start) < startLimit {
		resp, err := client.Get("http://" + addr + "/healthz")
		if err == nil {
			_ = resp.Body.Close()
			return time.Since(start), nil
		}
		waitUntil(time.Now().Add(500 * time.Microsecond))
	}
	return 0, errors.New("no answer from " + name)
}
