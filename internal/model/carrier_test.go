package model

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"creel/deliver"
	"creel/event"
	"creel/jobs"
)

// The destinations, beside that of mail. A send to the desk whose answer was
// lost waits for a person.
const app, desk = "app", "desk"

// weather is how a destination answers.
type weather string

const (
	fine    weather = "fine"
	broken  weather = "broken"  // 500
	busy    weather = "busy"    // 429, come again later
	refusal weather = "refusal" // 400
	gone    weather = "gone"    // 410
	nobody  weather = "nobody"  // the connection is refused
	silent  weather = "silent"  // the answer is lost
	mixed   weather = "mixed"   // one of these for each attempt
)

// sky is what all destinations are like, and what reached them. Its methods may
// be called by any goroutine.
type sky struct {
	mu       sync.Mutex
	weather  map[string]weather
	model    *model // not changed while attempts run
	last     map[int64]deliver.Result
	names    map[string]string // webhook-id: what it is the identity of
	calls    int
	problems []string
}

func newSky(m *model) *sky {
	return &sky{weather: map[string]weather{}, model: m, last: map[int64]deliver.Result{}, names: map[string]string{}}
}

// Attempt implements jobs.Carrier.
func (k *sky) Attempt(_ context.Context, s event.Shipment, now time.Time) deliver.Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	k.inspect(&s)
	result := answer(k.weather[s.Destination], &s)
	result.Attempt.Delivery, result.Attempt.Run, result.Attempt.Number = s.ID, s.Run, s.Tries
	result.Attempt.Spent, result.Attempt.Start = true, now
	k.last[s.ID] = result
	return result
}

// inspect looks at what arrives: what is stored, under one identity, and not
// after its end.
func (k *sky) inspect(s *event.Shipment) {
	p := k.model.parcels[s.ID-1]
	if p.state != event.DeliverySending || p.claim != s.Claim {
		k.problems = append(k.problems, fmt.Sprintf("delivery %d was sent by %s, it is %s by %s", s.ID, s.Claim, p.state, p.claim))
	}
	if string(s.Payload.Body) != p.of.body || s.Payload.Part != p.of.part || s.Event != p.of.key || s.Type != p.of.kind {
		k.problems = append(k.problems, fmt.Sprintf("delivery %d was sent with %s %q, its event is %s with %q", s.ID, s.Event, s.Payload.Body, p.of.key, p.of.body))
	}
	id := event.WebhookID(s.Key, s.Destination+s.Target)
	what := fmt.Sprintf("%q to %s %s, delivery %d", p.key, p.to, p.target, p.id)
	if k.names[id] != "" && k.names[id] != what {
		k.problems = append(k.problems, fmt.Sprintf("%s is the identity of %s and of %s", id, k.names[id], what))
	}
	k.names[id] = what
}

func answer(w weather, s *event.Shipment) deliver.Result {
	if w == mixed {
		sum := fnv.New32a()
		fmt.Fprint(sum, s.ID, s.Run, s.Tries)
		w = []weather{fine, fine, broken, busy, refusal, nobody, silent}[sum.Sum32()%7]
	}
	status := func(code int, outcome event.Outcome) deliver.Result {
		r := deliver.Result{Wrote: true, Attempt: event.Attempt{Status: code, Outcome: outcome}}
		if outcome != event.OK {
			r.Attempt.Error = string(w)
		}
		return r
	}
	switch w {
	case broken:
		return status(500, event.Transient)
	case busy:
		r := status(429, event.Transient)
		r.RetryAfter = 90 * time.Second
		return r
	case refusal:
		return status(400, event.Permanent)
	case gone:
		r := status(410, event.Permanent)
		r.Gone = true
		return r
	case nobody:
		r := status(0, event.Transient)
		r.Wrote = false
		return r
	case silent:
		return status(0, event.Unknown)
	}
	return status(200, event.OK)
}

// routes are the destinations with their policies. One attempt flies at once,
// so that a history has one order.
func (k *sky) routes() []jobs.Route {
	short := jobs.Policy{Name: "short", Delays: []time.Duration{time.Second, time.Minute}, Attempts: 3}
	usual := jobs.BuiltInPolicies()[jobs.PolicyDefault]
	return []jobs.Route{
		{Name: app, Carrier: k, Policy: usual, InFlight: 1, Longest: usual.Longest(90 * time.Second)},
		{Name: desk, Carrier: k, Policy: short, InFlight: 1, Review: true, Longest: short.Longest(90 * time.Second)},
		{Name: event.Mail, Carrier: k, Policy: short, InFlight: 1, Repeats: 1, Longest: short.Longest(90 * time.Second)},
	}
}
