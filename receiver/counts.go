package receiver

import (
	"sync"
	"sync/atomic"
	"time"

	"creel/meter"
)

// Counts are the counters of one source since the start: its requests by what
// became of them, and its rejects by cause. Every label comes from the
// configuration or from a fixed list.
type Counts struct {
	Source  string           `json:"source"` // "" for requests that named no source of ours
	Results map[string]int64 `json:"results"`
	Rejects map[string]int64 `json:"rejects"`
	// Events counts the stored rows by what the inbox said: one request may
	// carry many.
	Events map[string]int64 `json:"events"`
	// Secrets counts the stored requests by the configured secret that
	// verified them: a secret that no longer counts can be taken out.
	Secrets []int64 `json:"secrets,omitempty"`
	// Last is when the latest receipt was acknowledged; zero for none.
	Last time.Time `json:"last,omitzero"`
	// Latency is how long receipts took, from the complete request to the
	// written answer.
	Latency meter.Reading `json:"-"`
}

// Result is what became of a request, with the class of its status.
type Result struct {
	Name  string
	Class string // "2xx", "4xx" or "5xx"
}

// OtherResults lists what becomes of requests that neither are a receipt nor
// failed verification, at a source, and where a request names no source of ours.
func OtherResults() (ofSource, ofStranger []Result) {
	for res := resultSkipped; res < results; res++ {
		switch res {
		case resultAlive, resultRejected, resultRefusedProbe, resultUnknown, resultMethod:
		default:
			ofSource = append(ofSource, res.public())
		}
	}
	return append(ofSource, resultMethod.public()), []Result{resultUnknown.public(), resultMethod.public()}
}

func (r result) public() Result {
	return Result{Name: r.String(), Class: string(rune('0'+answers[r].status/100)) + "xx"}
}

// Receipts is how many verified requests were stored, or known already.
func (c *Counts) Receipts() int64 {
	return c.Results[resultNew.String()] + c.Results[resultDuplicate.String()] + c.Results[resultConflict.String()]
}

// EventResults lists what the inbox says of an event: the keys of
// Counts.Events.
func EventResults() []string { return []string{"new", "duplicate", "conflict"} }

// tally counts the requests of one source.
type tally struct {
	results [results]atomic.Int64
	rejects sync.Map // cause → *atomic.Int64; the causes are a fixed list
	events  [3]atomic.Int64
	secrets [maxSecrets]atomic.Int64
}

// maxSecrets is how many secrets of a source have a counter; later ones share
// the last.
const maxSecrets = 16

// The places of tally.events.
const (
	countNew = iota
	countDuplicate
	countConflict
)

func (t *tally) count(res result) { t.results[res].Add(1) }

func (t *tally) reject(cause string) {
	counter, ok := t.rejects.Load(cause)
	if !ok {
		counter, _ = t.rejects.LoadOrStore(cause, new(atomic.Int64))
	}
	counter.(*atomic.Int64).Add(1)
}

// secret counts a request by the secret that verified it; -1 is none.
func (t *tally) secret(index int) {
	if index >= 0 {
		t.secrets[min(index, maxSecrets-1)].Add(1)
	}
}

func (t *tally) snapshot(source string) Counts {
	counts := Counts{
		Source:  source,
		Results: make(map[string]int64),
		Rejects: make(map[string]int64),
		Events:  make(map[string]int64),
	}
	for res := range t.results {
		if n := t.results[res].Load(); n > 0 {
			counts.Results[result(res).String()] += n
		}
	}
	t.rejects.Range(func(cause, counter any) bool {
		counts.Rejects[cause.(string)] = counter.(*atomic.Int64).Load()
		return true
	})
	for place, name := range EventResults() {
		if n := t.events[place].Load(); n > 0 {
			counts.Events[name] = n
		}
	}
	for index := range t.secrets {
		if n := t.secrets[index].Load(); n > 0 {
			counts.Secrets = append(counts.Secrets, make([]int64, index+1-len(counts.Secrets))...)
			counts.Secrets[index] = n
		}
	}
	return counts
}
