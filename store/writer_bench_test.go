package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// BenchmarkWriter is what the writer alone can take: a payload row of 1 KiB
// and an event row with a unique random id, in the shape of the inbox, synced
// before each answer.
func BenchmarkWriter(b *testing.B) {
	for _, submitters := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(submitters), func(b *testing.B) { benchmarkWriter(b, submitters) })
	}
}

func benchmarkWriter(b *testing.B, submitters int) {
	s := newStore(b)
	ctx := context.Background()
	must(b, s.write(ctx, work, 1, func(t *tx) error {
		if _, err := t.exec("CREATE TABLE app_payload (id INTEGER PRIMARY KEY, body BLOB NOT NULL, header TEXT NOT NULL) STRICT"); err != nil {
			return err
		}
		_, err := t.exec(`CREATE TABLE app_event (seq INTEGER PRIMARY KEY, source TEXT NOT NULL, account TEXT NOT NULL, id TEXT NOT NULL,
			type TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL, received_at INTEGER NOT NULL, claim TEXT,
			content BLOB NOT NULL, payload INTEGER, UNIQUE (source, account, id)) STRICT`)
		return err
	}))
	body, content := make([]byte, 1024), make([]byte, 16)
	header := "Content-Type: application/json\nUser-Agent: bench/1\n"
	var left atomic.Int64
	left.Store(int64(b.N))
	before, used := s.Gauges(), cpu(b)
	b.ReportAllocs()
	b.ResetTimer()
	var group sync.WaitGroup
	for range submitters {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				payload := bind(body, header)
				row := bind("bench", "", rand.Text(), "invoice.paid", "claimed", 1, int64(1764500000000), "boot.1", content, nil)
				if err := s.write(ctx, intake, 1, func(t *tx) error {
					id, _, err := t.insertBound("INSERT INTO app_payload (body, header) VALUES (?, ?)", payload)
					if err != nil {
						return err
					}
					row[9].Value = id
					_, _, err = t.insertBound(`INSERT INTO app_event (source, account, id, type, state, attempts, received_at, claim, content, payload)
						VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source, account, id) DO NOTHING`, row)
					return err
				}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	after := s.Gauges()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64((cpu(b)-used).Microseconds())/float64(b.N), "cpu-µs/event")
	b.ReportMetric(float64(after.Units-before.Units)/float64(after.Batches-before.Batches), "units/batch")
	b.ReportMetric(float64(after.WALBytes)/(1<<20), "WAL-MB")
}

// cpu is the processor time of this process: on shared cores it says more than
// the clock.
func cpu(b *testing.B) time.Duration {
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
