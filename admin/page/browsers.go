package page

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// browserLife is how long a browser is known after a login.
	browserLife = 90 * 24 * time.Hour
	maxBrowsers = 1000
)

// browsers are those from which somebody has logged in during this life of the
// server, by the hashes of what they show. It opens nothing: it lets its owner
// try a password while strangers use up everybody's guesses, as OWASP advises
// with device cookies.
type browsers struct {
	mu  sync.Mutex
	all map[[32]byte]bool
}

func newBrowsers() *browsers { return &browsers{all: map[[32]byte]bool{}} }

// add makes one known and returns what it has to show.
func (b *browsers) add() string {
	id := random()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.all) >= maxBrowsers {
		clear(b.all)
	}
	b.all[sha256.Sum256([]byte(id))] = true
	return id
}

func (b *browsers) has(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[sha256.Sum256([]byte(id))]
}

func (b *browsers) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.all)
}

// known is the cookie by which a browser is known.
func (p *Page) known() cookie {
	c := newCookie("creel_known", p.prefix, p.cookie.secure)
	c.lasts = browserLife
	return c
}
