package crash

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"creel/internal/testkit"
)

// clients send without pause, as impatient senders do: an event that was not
// acknowledged is sent again until it is, and now and then one that was
// acknowledged is sent once more.
type clients struct {
	url    atomic.Pointer[string] // nil while the server is known to be down
	secret string
	stop   chan struct{}
	done   sync.WaitGroup

	mu         sync.Mutex
	acked      []string
	duplicates int // acknowledged repeats of acknowledged events
	refused    int // answers that were not 2xx
	broken     int // requests without an answer
	wrong      []string
}

func startClients(t *testing.T, n int, secret string) *clients {
	t.Helper()
	c := &clients{secret: secret, stop: make(chan struct{})}
	for i := range n {
		c.done.Add(1)
		go func() { defer c.done.Done(); c.send(t, i) }()
	}
	t.Cleanup(c.end)
	return c
}

// end stops the clients; each finishes the request it is in.
func (c *clients) end() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.done.Wait()
}

func (c *clients) point(url string) { c.url.Store(&url) }

func (c *clients) send(t *testing.T, number int) {
	random := rand.New(rand.NewPCG(uint64(number), 0x6372656c))
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for n := 0; ; n++ {
		id := fmt.Sprintf("evt_%d_%d_%x", number, n, random.Uint32())
		if !c.deliver(t, client, id) {
			return
		}
		c.mu.Lock()
		c.acked = append(c.acked, id)
		again := ""
		if random.IntN(4) == 0 {
			again = c.acked[random.IntN(len(c.acked))]
		}
		c.mu.Unlock()
		if again != "" {
			if !c.deliver(t, client, again) {
				return
			}
			c.mu.Lock()
			c.duplicates++
			c.mu.Unlock()
		}
	}
}

// deliver sends one event until it is acknowledged; false when the clients
// were stopped first.
func (c *clients) deliver(t *testing.T, client *http.Client, id string) bool {
	body := []byte(fmt.Sprintf(`{"id":%q,"type":"load.sent","pad":"%0512d"}`, id, 0))
	for {
		select {
		case <-c.stop:
			return false
		default:
		}
		url := c.url.Load()
		if url == nil {
			testkit.Await(time.Second, func() bool { return c.url.Load() != nil })
			continue
		}
		sender := testkit.Sender{URL: *url, Secret: c.secret, Sign: testkit.SignPlain}
		status, err := exchange(client, sender.Request(t, id, body, time.Now()))
		switch {
		case err != nil:
			c.note(&c.broken)
			// The port is closed: wait for the next life instead of spinning.
			testkit.Await(20*time.Millisecond, func() bool { return c.url.Load() != url })
		case status == http.StatusOK:
			return true
		case status == http.StatusServiceUnavailable:
			c.note(&c.refused)
			testkit.Await(20*time.Millisecond, func() bool { return c.url.Load() != url })
		default:
			c.mu.Lock()
			c.wrong = append(c.wrong, fmt.Sprintf("%s: %d", id, status))
			c.mu.Unlock()
			return false
		}
	}
}

func (c *clients) note(counter *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*counter++
}

// acknowledged is what senders were told is safe.
func (c *clients) acknowledged() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.acked...)
}

func exchange(client *http.Client, req *http.Request) (int, error) {
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer bytes.Buffer
	if _, err := io.Copy(&answer, io.LimitReader(resp.Body, 4096)); err != nil {
		return 0, err
	}
	return resp.StatusCode, nil
}
