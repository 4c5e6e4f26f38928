package crash

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"creel/internal/testkit"
)

// steady sends new events at a rate, whatever the answers are, but while the
// server is known to be down. How long an answer took counts from the moment at
// which its request was to be sent.
type steady struct {
	url    atomic.Pointer[string] // nil while the server is known to be down
	secret string
	source string
	stop   chan struct{}
	done   sync.WaitGroup

	mu      sync.Mutex
	acked   []string
	refused int // 503
	broken  int // no answer: the server was killed
	wrong   []string
	took    []time.Duration
}

// steadyConnections is over how many connections the events go.
const steadyConnections = 64

func startSteady(t *testing.T, source, secret string, perSecond int) *steady {
	t.Helper()
	s := &steady{secret: secret, source: source, stop: make(chan struct{})}
	every := time.Second * steadyConnections / time.Duration(perSecond)
	for i := range steadyConnections {
		s.done.Go(func() { s.send(t, i, every) })
	}
	t.Cleanup(s.end)
	return s
}

func (s *steady) end() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.done.Wait()
}

func (s *steady) point(url string) { s.url.Store(&url) }
func (s *steady) hold()            { s.url.Store(nil) }

func (s *steady) send(t *testing.T, number int, every time.Duration) {
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	next := time.Now().Add(every * time.Duration(number) / steadyConnections)
	for n := 0; ; n++ {
		timer := time.NewTimer(time.Until(next))
		select {
		case <-s.stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		url := s.url.Load()
		if url == nil {
			next = time.Now().Add(every)
			continue
		}
		id := fmt.Sprintf("new_%d_%d", number, n)
		body := []byte(fmt.Sprintf(`{"id":%q,"type":"new.sent","pad":"%0512d"}`, id, 0))
		sender := testkit.Sender{URL: *url, Secret: s.secret, Sign: testkit.SignPlain}
		status, err := exchange(client, sender.Request(t, id, body, time.Now()))
		s.note(id, status, err, time.Since(next))
		if next = next.Add(every); err != nil {
			next = time.Now().Add(every)
		}
	}
}

func (s *steady) note(id string, status int, err error, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.broken++
	case status == http.StatusOK:
		s.acked, s.took = append(s.acked, id), append(s.took, took)
	case status == http.StatusServiceUnavailable:
		s.refused++
	default:
		s.wrong = append(s.wrong, fmt.Sprintf("%s: %d", id, status))
	}
}

// percentile is what that share of the answers took at most.
func (s *steady) percentile(share float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.took) == 0 {
		return 0
	}
	slices.Sort(s.took)
	return s.took[min(len(s.took)-1, int(share*float64(len(s.took))))]
}
