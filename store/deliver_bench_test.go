package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"creel/event"
)

// desktop is a handoff that keeps what it is given.
type desktop struct {
	mu    sync.Mutex
	works []event.Work
}

func (*desktop) Reserve(n int) int { return n }
func (*desktop) Release(int)       {}
func (d *desktop) Hand(works []event.Work) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.works = append(d.works, works...)
}

// BenchmarkDelivered is what the store does for an event with one delivery: it
// is accepted, settled and sent, in batches of 16 of each, one sync for a batch.
func BenchmarkDelivered(b *testing.B) {
	benchmarkFinished(b, func(w event.Work, n int) []event.Effect {
		return []event.Effect{event.Forward{Key: w.Key.String() + "/forward", Rule: "forward", Destination: "app", Claimed: true}}
	})
}

// BenchmarkRules is the same with one grant and one state of many objects.
func BenchmarkRules(b *testing.B) {
	benchmarkFinished(b, func(w event.Work, n int) []event.Effect {
		return []event.Effect{
			event.Grant{Key: w.Key.String() + "/rule", Rule: "rule", To: fmt.Sprint("c_", n%1000), Unit: "credits", Amount: 100},
			event.SetState{Rule: "rule", Object: fmt.Sprint("o_", n*7919%100_000), To: "active", Version: fmt.Sprint(n)},
		}
	})
}

func benchmarkFinished(b *testing.B, effects func(w event.Work, n int) []event.Effect) {
	const batch = 64
	d := &desktop{}
	s := newStore(b)
	s.SetHandoff(d)
	ctx := context.Background()
	at := time.UnixMilli(1_764_500_000_000)
	body := make([]byte, 1024)
	_, _ = rand.Read(body)
	const header = "Content-Type: application/json\nUser-Agent: bench/1\nStripe-Signature: t=1764500000,v1=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
	var spent [3]time.Duration
	events := 0
	for b.Loop() {
		begun := cpu(b)
		receipt := &event.Receipt{Source: "bench", Origin: event.FromWebhook, At: at, Body: body, Header: header}
		var group sync.WaitGroup
		for range batch {
			events++
			item := event.Item{Key: event.Key{Source: "bench", ID: "evt_" + rand.Text()}, Type: "invoice.paid", Object: "in_1MtHbELkdIwHu7ix", Version: "1764500000", State: event.Pending}
			binary.LittleEndian.PutUint64(item.Content[:], uint64(events))
			one := *receipt
			one.Items = []event.Item{item}
			group.Go(func() {
				if _, err := s.Accept(ctx, &one); err != nil {
					b.Error(err)
				}
			})
		}
		group.Wait()
		accepted := cpu(b)
		finishes := make([]event.Finish, len(d.works))
		for i, w := range d.works {
			finishes[i] = done(w, effects(w, events-len(d.works)+i)...)
			finishes[i].Key = w.Key
		}
		d.works = d.works[:0]
		finished, _, err := s.Settle(ctx, at, finishes, 0)
		if err != nil {
			b.Fatal(err)
		}
		settled := cpu(b)
		var ends []event.DeliveryFinish
		for i := range finished {
			if finished[i].Err != nil {
				b.Fatalf("%+v", finished[i])
			}
			for _, s := range finished[i].Shipments {
				ends = append(ends, outcome(s, event.DeliverySent))
			}
		}
		if len(ends) > 0 {
			if _, _, err := s.Ship(ctx, at, ends, nil); err != nil {
				b.Fatal(err)
			}
		}
		spent[0] += accepted - begun
		spent[1] += settled - accepted
		spent[2] += cpu(b) - settled
	}
	for i, what := range []string{"accept", "settle", "ship"} {
		b.ReportMetric(float64(spent[i].Nanoseconds())/1000/float64(events), what+"-cpu-µs/event")
	}
	after := s.Gauges()
	b.ReportMetric(float64(after.WALBytes)/(1<<20), "WAL-MB")
}
