package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// setup is a configuration of the server under test.
type setup struct {
	listen      string // 127.0.0.1:0 where it is empty
	destination string // forward everything there; "" stores alone
	inFlight    int
}

func (s setup) write(dir string) error {
	if s.listen == "" {
		s.listen = "127.0.0.1:0"
	}
	forward, destination := "", ""
	if s.destination != "" {
		forward = `forward = "app"`
		destination = fmt.Sprintf("[destination.app]\nurl = %q\nsecret = \"env:APP_SECRET\"\nmax_in_flight = %d\n", s.destination, s.inFlight)
	}
	text := fmt.Sprintf(`
listen   = %q
database = "creel.db"

[admin]
listen   = "127.0.0.1:0"
password = "env:ADMIN_PASSWORD"

[log]
format = "json"

[[source]]
name    = "load"
secrets = ["env:LOAD_SECRET"]
%s
  [source.verify]
  auth      = "hmac-sha256"
  key       = "utf8"
  signature = "header.x-signature"
  encoding  = "hex"
  signed    = "{body}"
  id        = "body.id"
  type      = "body.type"
  integrity = "full"

%s`, s.listen, forward, destination)
	if err := os.WriteFile(filepath.Join(dir, "creel.toml"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

var environment = []string{
	"LOAD_SECRET=" + secret,
	"APP_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	"ADMIN_PASSWORD=a long password for the load",
}

// creel starts the server under test in a folder.
func (b *run) creel(ctx context.Context, dir string, s setup) (*program, error) {
	if err := s.write(dir); err != nil {
		return nil, err
	}
	return begin(ctx, dir, environment, b.binary, "serve", "-c", "creel.toml")
}

// ceiling starts this command again as the HTTP ceiling.
func (b *run) ceiling(ctx context.Context, flags ...string) (*program, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	return begin(ctx, dir, nil, b.self, append([]string{"ceiling"}, flags...)...)
}

// operate runs a command of the binary beside a server.
func (b *run) operate(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, b.binary, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("creel %v: %w: %s", args, err, out)
	}
	return nil
}

// build makes the binary as it is released.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "creel")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=nethttpomithttp2", "-ldflags=-s -w", "-o", path, "creel")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return path, nil
}
