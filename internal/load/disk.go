package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// syncTime is the median time in milliseconds that this disk takes to write
// and sync one page at the end of a file, as a commit does.
func syncTime(dir string) (float64, error) {
	file, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	defer func() { _ = file.Close(); _ = os.Remove(file.Name()) }()
	page := make([]byte, 4096)
	times := make([]time.Duration, 200)
	for i := range times {
		start := time.Now()
		if _, err := file.WriteAt(page, int64(i*len(page))); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		if err := syscall.Fdatasync(int(file.Fd())); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	return at(times, 0.5), nil
}

// copyFile copies a database that no server has open.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return fmt.Errorf("copy the database: %w", err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	return nil
}
