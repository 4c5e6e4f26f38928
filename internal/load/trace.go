package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// countSyncs attaches strace to a server and counts what it writes to files
// and syncs.
func countSyncs(ctx context.Context, pid int, d time.Duration) (int, error) {
	dir, err := os.MkdirTemp("", "creel-trace-")
	if err != nil {
		return 0, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "trace")
	trace := exec.CommandContext(ctx, "strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,pwrite64,ftruncate", "-o", out, "-p", strconv.Itoa(pid))
	if err := trace.Start(); err != nil {
		return 0, fmt.Errorf("start strace: %w", err)
	}
	waitUntil(time.Now().Add(d))
	_ = trace.Process.Signal(syscall.SIGINT)
	_ = trace.Wait()
	text, err := os.ReadFile(out)
	if err != nil {
		return 0, fmt.Errorf("read the trace: %w", err)
	}
	return bytes.Count(text, []byte("(")), nil
}

// benchOrder is P15: at each answer, the bytes of its event were written to
// the WAL and synced after that, before the answer was written.
func benchOrder(ctx context.Context, b *run) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	if err := (setup{}).write(dir); err != nil {
		return err
	}
	out := filepath.Join(dir, "trace")
	// -D leaves the server our own child, so that it gets our signals.
	p, err := begin(ctx, dir, environment, "strace", "-D", "-f", "-q", "-y", "-s", "6000",
		"-e", "trace=read,write,pwrite64,fsync,fdatasync", "-o", out, b.binary, "serve", "-c", "creel.toml")
	if err != nil {
		return err
	}
	r, err := load{url: p.url(), connections: 16, events: 2000, size: bodySize}.run(ctx)
	if stop := p.stop(); err == nil && stop != nil {
		err = fmt.Errorf("stop the server: %w", stop)
	}
	if err != nil {
		return err
	}
	b.keep("creel under strace", r)
	if err := traced(out, p.pid()); err != nil {
		return err
	}
	trace, err := os.Open(out)
	if err != nil {
		return fmt.Errorf("read the trace: %w", err)
	}
	defer func() { _ = trace.Close() }()
	o := newOrder()
	if err := o.read(trace); err != nil {
		return err
	}
	if o.answers < r.Events {
		return fmt.Errorf("the trace shows %d of %d answers", o.answers, r.Events)
	}
	b.note("P15", fmt.Sprintf("answers after their sync, of %d", o.answers), 100*float64(o.answers-o.early)/float64(o.answers), "%", 100, true)
	return nil
}

// traced waits until strace has written the end of a process.
func traced(out string, pid int) error {
	last := []byte(strconv.Itoa(pid) + " +++ exited")
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); waitUntil(time.Now().Add(50 * time.Millisecond)) {
		text, err := os.ReadFile(out)
		if err != nil {
			return fmt.Errorf("read the trace: %w", err)
		}
		if bytes.Contains(text, last) {
			return nil
		}
	}
	return errors.New("strace did not write the end of the server")
}

// order follows a trace: request read, event written to the WAL, WAL synced,
// answer written.
type order struct {
	asked   map[string]string // socket to the id of its last request
	written map[string]bool   // ids that stand in the WAL, not synced
	synced  map[string]bool
	pending map[string]pending // a call that another one interrupted in the trace, by thread
	answers int
	early   int // answers whose event was not synced
}

// pending is a call that has begun: what it will have done when it returns.
type pending struct {
	name string
	ids  []string
	wal  bool
}

func newOrder() *order {
	return &order{asked: map[string]string{}, written: map[string]bool{}, synced: map[string]bool{}, pending: map[string]pending{}}
}

var (
	callLine    = regexp.MustCompile(`^(\d+)\s+(\w+)\((\d+<[^>]*(?:->[^>]*)?>)`)
	resumedLine = regexp.MustCompile(`^(\d+)\s+<\.\.\. (\w+) resumed>`)
	idInText    = regexp.MustCompile(idPrefix + `[0-9a-z]{26}`)
)

func (o *order) read(trace io.Reader) error {
	lines := bufio.NewReaderSize(trace, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			o.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the trace: %w", err)
		}
	}
}

func (o *order) line(line string) {
	if m := resumedLine.FindStringSubmatch(line); m != nil {
		call := o.pending[m[1]]
		delete(o.pending, m[1])
		if call.name == "read" {
			o.request(call.ids, line) // strace prints what was read at the return
			return
		}
		o.returned(call)
		return
	}
	m := callLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	thread, name, file := m[1], m[2], m[3]
	call := pending{name: name, wal: strings.Contains(file, "-wal>")}
	switch name {
	case "read":
		call.ids = []string{file}
	case "pwrite64":
		call.ids = idInText.FindAllString(line, -1)
	case "fsync", "fdatasync":
		for id := range o.written {
			call.ids = append(call.ids, id) // what stood in the WAL when the sync began
		}
	case "write":
		o.answer(file, line)
		return
	}
	if strings.Contains(line, "<unfinished ...>") {
		o.pending[thread] = call
		return
	}
	if name == "read" {
		o.request(call.ids, line)
		return
	}
	o.returned(call)
}

// request notes which event a socket asks to be stored. The first letter may
// be missing: net/http reads one byte ahead while it waits for the next request.
func (o *order) request(socket []string, line string) {
	if len(socket) == 0 || !strings.Contains(line, "OST /in/") {
		return
	}
	if id := idInText.FindString(line); id != "" {
		o.asked[socket[0]] = id
	}
}

func (o *order) returned(call pending) {
	if !call.wal {
		return
	}
	for _, id := range call.ids {
		if call.name == "pwrite64" {
			o.written[id] = true
		} else {
			o.synced[id] = true
			delete(o.written, id)
		}
	}
}

// answer judges a 200 at the moment when its first byte is written.
func (o *order) answer(socket, line string) {
	if !strings.Contains(line, `"HTTP/1.1 200`) {
		return
	}
	id, ok := o.asked[socket]
	if !ok {
		return
	}
	delete(o.asked, socket)
	o.answers++
	if !o.synced[id] {
		o.early++
	}
}
