package main

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
)

// large returns a fresh folder with a copy of a database that holds b.rows
// events, which is filled once, through the server.
func (b *run) large(ctx context.Context) (string, error) {
	if b.filled == "" {
		dir, err := b.folder()
		if err != nil {
			return "", err
		}
		p, err := b.creel(ctx, dir, setup{})
		if err != nil {
			return "", err
		}
		l := load{url: p.url(), connections: 256, events: b.rows, size: bodySize}
		r, err := l.run(ctx)
		b.keep("fill", r)
		u, e := measure(p.pid())
		if stop := p.stop(); err == nil {
			err = stop
		}
		if err != nil {
			return "", fmt.Errorf("fill the database: %w", err)
		}
		if e == nil {
			b.note("P6", fmt.Sprintf("memory after %d events", b.rows), u.pss, "MB", 64, false)
		}
		b.filled = dir
	}
	dir, err := b.folder()
	if err != nil {
		return "", err
	}
	err = copyFile(filepath.Join(b.filled, "creel.db"), filepath.Join(dir, "creel.db"))
	syscall.Sync() // what the fill and the copy left dirty is not the server's
	return dir, err
}

// benchRows is P8's last part: intake with many rows over intake into an
// empty file.
func benchRows(ctx context.Context, b *run) error {
	var ratios []float64
	for range b.rounds {
		l := load{connections: 64, duration: b.duration, size: bodySize}
		empty, err := b.loadCreel(ctx, l, setup{}, "creel, empty")
		if err != nil {
			return err
		}
		dir, err := b.large(ctx)
		if err != nil {
			return err
		}
		full, err := b.loadIn(ctx, dir, l, setup{}, "creel, many rows")
		if err != nil {
			return err
		}
		ratios = append(ratios, full.PerSecond/empty.PerSecond)
	}
	b.note("P8", fmt.Sprintf("intake at %d rows over empty", b.rows), median(ratios), "", 0.75, true)
	return nil
}

// loadIn runs a load against a server on the files of a folder.
func (b *run) loadIn(ctx context.Context, dir string, l load, s setup, name string) (result, error) {
	p, err := b.creel(ctx, dir, s)
	if err != nil {
		return result{}, err
	}
	l.url = p.url()
	r, err := l.run(ctx)
	if stop := p.stop(); err == nil && stop != nil {
		err = fmt.Errorf("stop the server: %w", stop)
	}
	return b.keep(name, r), err
}
