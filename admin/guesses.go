package admin

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// How many guesses are looked at: OWASP's advice is a delay, not a lockout,
// which would let a stranger lock the owner out.
const (
	GuessesEach  = 5  // a minute from one address
	GuessesAll   = 30 // a minute from all together
	guessWindow  = time.Minute
	maxAddresses = 4096
)

// Guesses counts the passwords or tokens that somebody guessed in the last
// minute. It is bounded: when too many addresses are known the oldest are
// forgotten, the limit for all stays.
type Guesses struct {
	clock func() time.Time
	mu    sync.Mutex
	all   []time.Time
	each  map[string][]time.Time
}

// NewGuesses counts none yet.
func NewGuesses(clock func() time.Time) *Guesses {
	return &Guesses{clock: clock, each: map[string][]time.Time{}}
}

// Take asks for one guess; false says to come again after wait.
func (l *Guesses) Take(address string) (wait time.Duration, ok bool) {
	now, network := l.clock(), networkOf(address)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = recent(l.all, now)
	own := recent(l.each[network], now)
	if len(own) >= GuessesEach {
		return guessWindow - now.Sub(own[0]), false
	}
	if len(l.all) >= GuessesAll {
		return guessWindow - now.Sub(l.all[0]), false
	}
	l.all = append(l.all, now)
	l.note(network, own, now)
	return 0, true
}

// TakeOf asks for one guess of somebody who was let in before and shows it. He
// has guesses of his own, so that nobody who guesses keeps him out, from
// wherever and however often.
func (l *Guesses) TakeOf(known string) (wait time.Duration, ok bool) {
	now := l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	own := recent(l.each[known], now)
	if len(own) >= GuessesEach {
		return guessWindow - now.Sub(own[0]), false
	}
	l.note(known, own, now)
	return 0, true
}

// note keeps a guess; the caller holds the lock.
func (l *Guesses) note(whose string, before []time.Time, now time.Time) {
	if len(l.each) >= maxAddresses {
		for known, times := range l.each {
			if len(recent(times, now)) == 0 || len(l.each) >= maxAddresses {
				delete(l.each, known)
			}
		}
	}
	l.each[whose] = append(before, now)
}

// Forgive takes the guesses of an address back: it was none.
func (l *Guesses) Forgive(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.each, networkOf(address))
}

// networkOf is what one guesser has of addresses: one of version 4, and of
// version 6 the 64 bits that a site is given.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	prefix, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}

func recent(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && (now.Sub(times[0]) >= guessWindow || now.Before(times[0])) {
		times = times[1:]
	}
	return times
}

// Address is who asks, without the port.
func Address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
