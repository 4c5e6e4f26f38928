package admin

import (
	"bytes"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processFamilies are the metrics of any Go process, under the names that the
// official clients gave them, so that the dashboards that exist for them work.
func processFamilies() []Family {
	return []Family{
		{"go_goroutines", gauge, nil, "Goroutines that exist."},
		{"go_threads", gauge, nil, "Threads of the operating system that the runtime made."},
		{"go_gc_cycles_total", counter, nil, "Garbage collections that were completed."},
		{"go_memstats_heap_alloc_bytes", gauge, nil, "Heap memory in use by objects."},
		{"go_memstats_alloc_bytes_total", counter, nil, "Heap memory that was ever allocated."},
		{"go_memstats_sys_bytes", gauge, nil, "Memory that the runtime has from the system."},
		{"process_cpu_seconds_total", counter, nil, "CPU time, user and system."},
		{"process_resident_memory_bytes", gauge, nil, "Resident memory."},
		{"process_virtual_memory_bytes", gauge, nil, "Virtual memory."},
		{"process_open_fds", gauge, nil, "Open file descriptors."},
		{"process_max_fds", gauge, nil, "File descriptors that may be open."},
		{"process_start_time_seconds", gauge, nil, "When the process started, in seconds since 1970."},
	}
}

// Process adds what the runtime and the system know about this process, which
// started at started.
func (e *Exposition) Process(started time.Time) {
	samples := []metrics.Sample{
		{Name: "/sched/goroutines:goroutines"}, {Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/total:bytes"},
	}
	metrics.Read(samples)
	for i, name := range []string{"go_goroutines", "go_gc_cycles_total", "go_memstats_heap_alloc_bytes",
		"go_memstats_alloc_bytes_total", "go_memstats_sys_bytes"} {
		if samples[i].Value.Kind() == metrics.KindUint64 {
			e.Value(name, float64(samples[i].Value.Uint64()))
		}
	}
	threads, _ := runtime.ThreadCreateProfile(nil)
	e.Value("go_threads", float64(threads))
	e.system()
	e.Time("process_start_time_seconds", started)
}

// system adds what only the system knows. What it does not tell is left out.
func (e *Exposition) system() {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		e.Value("process_cpu_seconds_total", float64(usage.Utime.Nano()+usage.Stime.Nano())/1e9)
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		e.Value("process_max_fds", float64(limit.Cur))
	}
	if names, err := os.ReadDir("/proc/self/fd"); err == nil {
		e.Value("process_open_fds", float64(len(names)-1)) // one is the folder that is read
	}
	// Pages of the whole and of what is resident; proc(5).
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return
	}
	for i, name := range []string{"process_virtual_memory_bytes", "process_resident_memory_bytes"} {
		fields := strings.Fields(string(bytes.TrimSpace(text)))
		if i >= len(fields) {
			return
		}
		if pages, err := strconv.ParseInt(fields[i], 10, 64); err == nil {
			e.Value(name, float64(pages*int64(os.Getpagesize())))
		}
	}
}
