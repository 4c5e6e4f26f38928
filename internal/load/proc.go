package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// usage is what the kernel says about a process.
type usage struct {
	pss    float64 // MB, from smaps_rollup: shared pages counted by their share
	cpu    time.Duration
	writes int64 // write system calls
	wrote  int64 // bytes sent to the disk
}

func measure(pid int) (usage, error) {
	var u usage
	base := filepath.Join("/proc", strconv.Itoa(pid))
	rollup, err := os.ReadFile(filepath.Join(base, "smaps_rollup"))
	if err != nil {
		return u, fmt.Errorf("read the memory of a process: %w", err)
	}
	u.pss = float64(field(rollup, "Pss:")) * 1024 / 1e6
	io, err := os.ReadFile(filepath.Join(base, "io"))
	if err != nil {
		return u, fmt.Errorf("read the writes of a process: %w", err)
	}
	u.writes, u.wrote = field(io, "syscw:"), field(io, "write_bytes:")
	stat, err := os.ReadFile(filepath.Join(base, "stat"))
	if err != nil {
		return u, fmt.Errorf("read the time of a process: %w", err)
	}
	// The name in parentheses may hold spaces; utime and stime are the 12th
	// and 13th fields after it (proc_pid_stat(5)), in ticks of 10 ms.
	_, rest, _ := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(" "))
	fields := bytes.Fields(rest)
	if len(fields) < 13 {
		return u, fmt.Errorf("read the time of a process: %q", stat)
	}
	for _, f := range fields[11:13] {
		ticks, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return u, fmt.Errorf("read the time of a process: %w", err)
		}
		u.cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	return u, nil
}

func field(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) > 1 && string(fields[0]) == name {
			n, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			return n
		}
	}
	return 0
}

// watch samples the memory of a process until the returned function is
// called, which gives the highest sample.
func watch(ctx context.Context, pid int) func() float64 {
	ctx, cancel := context.WithCancel(ctx)
	peak := make(chan float64, 1)
	go func() {
		most := 0.0
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			if u, err := measure(pid); err == nil {
				most = max(most, u.pss)
			}
			select {
			case <-ctx.Done():
				peak <- most
				return
			case <-tick.C:
			}
		}
	}()
	return func() float64 { cancel(); return <-peak }
}

// fileSize is the size of a file, 0 where there is none.
func fileSize(dir, name string) int64 {
	stat, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return 0
	}
	return stat.Size()
}
