package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"creel/event"
)

// BenchmarkAccept is what the store alone can take: events of 1 KiB, synced
// before each is answered, with random and with time-ordered ids.
func BenchmarkAccept(b *testing.B) {
	for _, submitters := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("random/%d", submitters), func(b *testing.B) {
			benchmarkAccept(b, submitters, func(int64) string { return "evt_" + rand.Text() })
		})
	}
	b.Run("ordered/64", func(b *testing.B) {
		benchmarkAccept(b, 64, func(i int64) string { return fmt.Sprintf("evt_%024d", i) })
	})
}

func benchmarkAccept(b *testing.B, submitters int, id func(int64) string) {
	s := newStore(b)
	ctx := context.Background()
	at := time.UnixMilli(1_764_500_000_000)
	body := make([]byte, 1024)
	_, _ = rand.Read(body)
	const header = "Content-Type: application/json\nUser-Agent: bench/1\nStripe-Signature: t=1764500000,v1=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
	var next atomic.Int64
	before, used := s.Gauges(), cpu(b)
	b.ReportAllocs()
	b.ResetTimer()
	var group sync.WaitGroup
	for range submitters {
		group.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				item := event.Item{Key: event.Key{Source: "bench", ID: id(i)}, Type: "invoice.paid", Object: "in_1MtHbELkdIwHu7ix", Version: "1764500000", State: event.Pending}
				binary.LittleEndian.PutUint64(item.Content[:], uint64(i))
				if _, err := s.Accept(ctx, &event.Receipt{Source: "bench", Origin: event.FromWebhook, At: at, Body: body, Header: header, Items: []event.Item{item}}); err != nil {
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

// BenchmarkAcceptSteady is P4's second half: the median of an insert with its
// sync at a steady 100 events/s, in lone syncs of the same disk that are made
// between them.
func BenchmarkAcceptSteady(b *testing.B) {
	s := newStore(b)
	ctx := context.Background()
	lone, err := os.Create(filepath.Join(filepath.Dir(s.Path()), "lone"))
	if err != nil {
		b.Fatal(err)
	}
	defer lone.Close()
	body := make([]byte, 1024)
	var inserts, syncs []time.Duration
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for i := 0; b.Loop(); i++ {
		<-ticks.C
		item := event.Item{Key: event.Key{Source: "bench", ID: "evt_" + rand.Text()}, Type: "invoice.paid", State: event.Ignored, Error: "no rule"}
		start := time.Now()
		if _, err := s.Accept(ctx, &event.Receipt{Source: "bench", Origin: event.FromWebhook, At: start, Body: body,
			Header: "Content-Type: application/json\n", Items: []event.Item{item}}); err != nil {
			b.Fatal(err)
		}
		inserts = append(inserts, time.Since(start))
		start = time.Now()
		if _, err := lone.WriteAt(body, int64(i)*4096); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(lone.Fd())); err != nil {
			b.Fatal(err)
		}
		syncs = append(syncs, time.Since(start))
	}
	slices.Sort(inserts)
	slices.Sort(syncs)
	insert, sync := inserts[len(inserts)/2], syncs[len(syncs)/2]
	b.ReportMetric(float64(insert.Microseconds()), "p50-µs/insert")
	b.ReportMetric(float64(sync.Microseconds()), "p50-µs/sync")
	b.ReportMetric(float64(insert)/float64(sync), "syncs/insert")
}
