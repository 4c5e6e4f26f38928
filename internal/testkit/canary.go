package testkit

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"testing"
)

// Canary holds markers that must not leak and the outputs in which they must
// not stand: a secret and a payload text that no test writes by chance.
type Canary struct {
	// Secret is long enough for every scheme; use it as the secret of the
	// sources and destinations of a test.
	Secret string
	// Payload is a text for the bodies that a test sends.
	Payload string

	mu      sync.Mutex
	outputs map[string]func() []byte
	markers map[string]string
}

// NewCanary returns fresh markers and checks the watched outputs when the
// test ends.
func NewCanary(t testing.TB) *Canary {
	t.Helper()
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		t.Fatalf("make a canary: %v", err)
	}
	mark := hex.EncodeToString(raw[:])
	c := &Canary{
		Secret:  "canary-secret-" + mark,
		Payload: "canary-payload-" + mark,
		outputs: map[string]func() []byte{},
	}
	c.markers = map[string]string{"secret": c.Secret, "payload": c.Payload}
	t.Cleanup(func() { c.Check(t) })
	return c
}

// Mark adds one more text that must not be seen, such as a secret in another
// encoding.
func (c *Canary) Mark(name, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.markers[name] = text
}

// Watch adds an output in which no marker may stand.
func (c *Canary) Watch(name string, output func() []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outputs[name] = output
}

// Check looks for every marker in every output.
func (c *Canary) Check(t testing.TB) {
	t.Helper()
	for _, leak := range c.Leaks() {
		t.Errorf("canary: %s", leak)
	}
}

// Leaks names each marker that was found and the output that shows it.
func (c *Canary) Leaks() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var leaks []string
	for name, output := range c.outputs {
		text := output()
		for marker, value := range c.markers {
			if bytes.Contains(text, []byte(value)) {
				leaks = append(leaks, "the "+marker+" stands in "+name)
			}
		}
	}
	return leaks
}
