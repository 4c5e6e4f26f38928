package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// benchMemory is P6's first half: idle and at 64 connections. What a backlog
// and many events need is noted by P11 and P8.
func benchMemory(ctx context.Context, b *run) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	p, err := b.creel(ctx, dir, setup{})
	if err != nil {
		return err
	}
	defer p.kill()
	waitUntil(time.Now().Add(time.Second))
	idle, err := measure(p.pid())
	if err != nil {
		return err
	}
	b.note("P6", "memory idle", idle.pss, "MB", 20, false)
	peak := watch(ctx, p.pid())
	r, err := load{url: p.url(), connections: 64, duration: b.duration, size: bodySize}.run(ctx)
	memory := peak()
	if err != nil {
		return err
	}
	b.keep("creel, memory", r)
	b.note("P6", "memory at 64 connections", memory, "MB", 40, false)
	busy, err := measure(p.pid())
	if err != nil {
		return err
	}
	b.note("P6", "CPU an event at 64 connections", float64((busy.cpu-idle.cpu).Microseconds())/float64(max(r.Events, 1)), "µs", 0, false)
	return p.stop()
}

// benchStart is P7: the size of the binary and the time to the first answer.
func benchStart(ctx context.Context, b *run) error {
	stat, err := os.Stat(b.binary)
	if err != nil {
		return fmt.Errorf("look at the binary: %w", err)
	}
	b.note("P7", "binary", float64(stat.Size())/1e6, "MB", 20, false)
	large, err := b.large(ctx)
	if err != nil {
		return err
	}
	empty, err := b.folder()
	if err != nil {
		return err
	}
	killed, err := b.killed(ctx)
	if err != nil {
		return err
	}
	addr, err := freePort()
	if err != nil {
		return err
	}
	starts := map[string][]float64{}
	for range max(b.rounds, 5) {
		bare, err := firstAnswer(ctx, empty, nil, addr, b.self, "ceiling", "-bare", "-listen", addr)
		if err != nil {
			return err
		}
		starts["bare"] = append(starts["bare"], bare.Seconds()*1000)
		for name, dir := range map[string]string{"empty": empty, "large": large} {
			if err := (setup{listen: addr}).write(dir); err != nil {
				return err
			}
			took, err := firstAnswer(ctx, dir, environment, addr, b.binary, "serve", "-c", "creel.toml")
			if err != nil {
				return err
			}
			starts[name] = append(starts[name], took.Seconds()*1000)
		}
	}
	if err := (setup{listen: addr}).write(killed); err != nil {
		return err
	}
	after, err := firstAnswer(ctx, killed, environment, addr, b.binary, "serve", "-c", "creel.toml")
	if err != nil {
		return err
	}
	bare := median(starts["bare"])
	b.note("P7", "start of a bare server", bare, "ms", 0, false)
	b.note("P7", "start over a bare server, empty", median(starts["empty"])-bare, "ms", 50, false)
	b.note("P7", fmt.Sprintf("start over a bare server, %d rows", b.rows), median(starts["large"])-bare, "ms", 50, false)
	b.note("P7", "start over a bare server, after kill -9 at full load", after.Seconds()*1000-bare, "ms", 150, false)
	return nil
}

// killed is a folder as a server leaves it that is killed at full load.
func (b *run) killed(ctx context.Context) (string, error) {
	dir, err := b.folder()
	if err != nil {
		return "", err
	}
	p, err := b.creel(ctx, dir, setup{})
	if err != nil {
		return "", err
	}
	loading := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(loading)
		_, _ = load{url: p.url(), connections: 64, duration: b.duration, size: bodySize}.run(ctx)
	}()
	waitUntil(time.Now().Add(b.duration / 2))
	p.kill()
	cancel()
	<-loading
	return dir, nil
}

// benchIdle is P14: a server that has nothing to do.
func benchIdle(ctx context.Context, b *run) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	p, err := b.creel(ctx, dir, setup{destination: "http://127.0.0.1:9/never", inFlight: 8})
	if err != nil {
		return err
	}
	defer p.kill()
	waitUntil(time.Now().Add(2 * time.Second))
	before, err := measure(p.pid())
	if err != nil {
		return err
	}
	wal, file := fileSize(dir, "creel.db-wal"), fileSize(dir, "creel.db")
	syncs, err := countSyncs(ctx, p.pid(), b.steady)
	if err != nil {
		return err
	}
	after, err := measure(p.pid())
	if err != nil {
		return err
	}
	grown := fileSize(dir, "creel.db-wal") - wal + fileSize(dir, "creel.db") - file
	b.note("P14", "writes and syncs of files while idle", float64(syncs), "writes", 0, false)
	b.note("P14", "bytes written while idle", float64(after.wrote-before.wrote+grown), "bytes", 0, true)
	b.note("P14", "CPU while idle", 100*(after.cpu-before.cpu).Seconds()/b.steady.Seconds(), "% of a core", 0.5, false)
	return p.stop()
}

// benchDisk is P13: the disk that an event needs, and the WAL after an
// overload.
func benchDisk(ctx context.Context, b *run) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	m, err := newMaker("127.0.0.1:8080", "/in/load", bodySize, false)
	if err != nil {
		return err
	}
	p, err := b.creel(ctx, dir, setup{})
	if err != nil {
		return err
	}
	defer p.kill()
	r, err := load{url: p.url(), connections: 256, duration: b.steady, size: bodySize}.run(ctx)
	if err != nil {
		return err
	}
	b.keep("creel, overload", r)
	b.note("P13", "WAL after an overload", float64(fileSize(dir, "creel.db-wal"))/(1<<20), "MiB", 16, false)
	if err := p.stop(); err != nil {
		return err
	}
	// What a request carries behind its first line: headers and body.
	carried := int64(len(m.request)) - int64(len("POST /in/load HTTP/1.1\r\n"))
	b.note("P13", "disk an event over its body and headers", float64(fileSize(dir, "creel.db")+fileSize(dir, "creel.db-wal"))/float64(int64(r.Events)*carried), "", 1.2, false)
	return nil
}
