package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	mrand "math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/event"
	"creel/handlers"
	"creel/jobs"
	"creel/store"
)

// benchRules is P9: events through rules with a grant and a state, in this
// process and until the last one is settled, over intake at 64 connections.
func benchRules(ctx context.Context, b *run) error {
	var ratios []float64
	for range b.rounds {
		l := load{connections: 64, duration: b.duration, size: bodySize}
		intake, err := b.loadCreel(ctx, l, setup{}, "creel, intake")
		if err != nil {
			return err
		}
		dir, err := b.folder()
		if err != nil {
			return err
		}
		rate, err := throughRules(ctx, dir, 64, b.duration)
		if err != nil {
			return err
		}
		ratios = append(ratios, rate/intake.PerSecond)
	}
	b.note("P9", "events through rules with grant and state, in process, over intake", median(ratios), "", 0.8, true)
	return nil
}

// settled is a store that counts what a worker settles.
type settled struct {
	*store.Store
	done atomic.Int64
}

func (s *settled) Settle(ctx context.Context, now time.Time, finishes []event.Finish, claim int) ([]event.Finished, []event.Work, error) {
	finished, works, err := s.Store.Settle(ctx, now, finishes, claim)
	for i := range finished {
		if err == nil && finished[i].Err == nil && finishes[i].State == event.Done {
			s.done.Add(1)
		}
	}
	return finished, works, err
}

// nowhere takes no deliveries: these rules make none.
type nowhere struct{}

func (nowhere) Reserve(string) bool   { return false }
func (nowhere) Unreserve(string)      {}
func (nowhere) Hand([]event.Shipment) {}

// grantAndState is the rule of P9.
func grantAndState() (*handlers.Rules, error) {
	cfg := config.Default()
	cfg.Sources = []config.Source{{Name: "load"}}
	cfg.Rules = []config.Rule{{
		Name:  "grant and state",
		Grant: &config.Grant{To: "{body.customer}", Unit: "credits", Amount: "100"},
		State: &config.SetState{Object: "{body.object}", To: "{body.state}", Version: "{body.version}"},
	}}
	rules, problems := handlers.Compile(cfg, handlers.Options{})
	return rules, problems.Err()
}

// throughRules is how many events a second are accepted and settled.
func throughRules(ctx context.Context, dir string, senders int, span time.Duration) (float64, error) {
	rules, err := grantAndState()
	if err != nil {
		return 0, err
	}
	s, err := store.Open(ctx, store.Options{Path: filepath.Join(dir, "creel.db"), Log: zerolog.Nop(), Clock: time.Now})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	policies, _ := jobs.CompilePolicies(nil)
	policy, _ := jobs.PolicyOf(policies, "default", "")
	counted := &settled{Store: s}
	book := &jobs.Rulebook{Rules: rules}
	worker := jobs.NewWorker(jobs.WorkerOptions{
		Inbox: counted, Shipper: nowhere{}, Rules: func() jobs.Rules { return book }, Policy: func() jobs.Policy { return policy },
		Timeout: func() time.Duration { return 10 * time.Second }, Clock: time.Now, Jitter: mrand.Float64, Log: zerolog.Nop(),
		Batch: 256, Room: 1024, Slow: 8,
	})
	s.SetHandoff(worker)
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); worker.Run(running) }()
	defer func() { stop(); <-ended }()

	var accepted atomic.Int64
	began := time.Now()
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			for time.Since(began) < span && ctx.Err() == nil {
				if _, err := s.Accept(ctx, receiptOf()); err == nil {
					accepted.Add(1)
				}
			}
		})
	}
	group.Wait()
	for counted.done.Load() < accepted.Load() {
		if time.Since(began) > 10*span {
			return 0, fmt.Errorf("%d of %d events were settled", counted.done.Load(), accepted.Load())
		}
		time.Sleep(time.Millisecond)
	}
	return float64(accepted.Load()) / time.Since(began).Seconds(), nil
}

// receiptOf is one event of a kilobyte, with a random id, about one of many
// objects and customers.
func receiptOf() *event.Receipt {
	var random [16]byte
	_, _ = rand.Read(random[:])
	id := hex.EncodeToString(random[:])
	body := fmt.Appendf(nil, `{"id":"evt_%s","object":"o_%d","customer":"c_%d","state":"active","version":%d,"fill":"`, id,
		mrand.IntN(100_000), mrand.IntN(1000), time.Now().UnixNano())
	body = append(append(body, bytes.Repeat([]byte("x"), max(0, bodySize-len(body)-2))...), `"}`...)
	return &event.Receipt{Source: "load", Origin: event.FromWebhook, At: time.Now(), Body: body, Header: "Content-Type: application/json\n",
		Items: []event.Item{{Key: event.Key{Source: "load", ID: "evt_" + id}, Type: "paid", State: event.Pending, Content: random}}}
}
