package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	mrand "math/rand/v2"
	"time"
)

// secret is what the load and every receiver under test know.
const secret = "load-secret-of-32-bytes-and-more"

// idPrefix stands before the 26 characters of every id.
const (
	idPrefix = "evt_"
	idSize   = len(idPrefix) + 26
)

// maker writes signed requests into one buffer again and again: only the id
// and the signature change, so that the client costs far less than the server.
// It belongs to one goroutine.
type maker struct {
	request   []byte // a whole HTTP/1.1 request
	id        []byte // inside request
	signature []byte // inside request
	body      []byte // inside request
	mac       hash.Hash
	sum       []byte
	random    *mrand.ChaCha8
	ordered   bool
}

// newMaker prepares requests with bodies of size bytes for a path of a host.
// Ordered ids begin with the time, as those of many providers do.
func newMaker(host, path string, size int, ordered bool) (*maker, error) {
	head := fmt.Sprintf(`{"id":"%s%026d","type":"invoice.paid","created":1700000000,"data":{"object":{"id":"in_1","amount_paid":4200,"pad":"`, idPrefix, 0)
	const end = `"}}}`
	pad := size - len(head) - len(end)
	if pad < 0 {
		return nil, fmt.Errorf("a body of %d bytes is too small, the least is %d", size, len(head)+len(end))
	}
	var seed [32]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("seed the ids: %w", err)
	}
	m := &maker{mac: hmac.New(sha256.New, []byte(secret)), random: mrand.NewChaCha8(seed), ordered: ordered}
	lines := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: load/1\r\nContent-Type: application/json\r\nContent-Length: %d\r\nX-Signature: ", path, host, size)
	m.request = append(m.request, lines...)
	signature := len(m.request)
	m.request = append(m.request, make([]byte, 2*sha256.Size)...)
	m.request = append(m.request, "\r\n\r\n"...)
	body := len(m.request)
	m.request = append(m.request, head...)
	for i := range pad {
		m.request = append(m.request, 'a'+byte((i*7+i/26)%26))
	}
	m.request = append(m.request, end...)
	m.signature = m.request[signature : signature+2*sha256.Size]
	m.body = m.request[body:]
	m.id = m.body[len(`{"id":"`) : len(`{"id":"`)+idSize]
	return m, nil
}

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// next signs a fresh event and returns its request, valid until the next call.
func (m *maker) next() []byte {
	id := m.id[len(idPrefix):]
	start := 0
	if m.ordered {
		start = 10
		stamp := uint64(time.Now().UnixMicro())
		for i := start - 1; i >= 0; i-- {
			id[i] = alphabet[stamp&31]
			stamp >>= 5
		}
	}
	for i := start; i < len(id); {
		for word, n := m.random.Uint64(), 0; n < 12 && i < len(id); n++ {
			id[i] = alphabet[word&31]
			word >>= 5
			i++
		}
	}
	m.mac.Reset()
	m.mac.Write(m.body)
	m.sum = m.mac.Sum(m.sum[:0])
	hex.Encode(m.signature, m.sum)
	return m.request
}

// key is the id of the event that next made, as a number to look it up by.
func (m *maker) key() uint64 { return keyOf(m.id) }

// keyOf folds an id: its last 16 characters are random in every order.
func keyOf(id []byte) uint64 {
	tail := id[len(id)-16:]
	return binary.LittleEndian.Uint64(tail)*31 ^ binary.LittleEndian.Uint64(tail[8:])
}
