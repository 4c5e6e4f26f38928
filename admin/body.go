package admin

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"creel/deliver"
	"creel/event"
)

const (
	// BodyPath is where the bodies are, followed by a token.
	BodyPath = "/body/"
	// bodyDomain keeps the signatures of tokens apart from all else that may ever
	// be signed with the same key.
	bodyDomain = "creel body 1\n"
	// bodyReads bounds how many bodies are in memory at once.
	bodyReads = 4
	// bodyTime bounds how long one answer may take: who reads slower asks for
	// the rest as a range.
	bodyTime = 2 * time.Minute
	// bodyGone is what an address says whose body is not kept any more.
	bodyGone = "the body is not kept any more\n"
	// nameSize is how much of the SHA-256 of an event's key stands in a token.
	nameSize = 16
	// claimSize is the number of the event, the end of the token's time and the
	// name, in bytes.
	claimSize = 8 + 8 + nameSize
)

// Bodies hands out the whole body of an event to whoever has its address. The
// address is signed and good for some time; it needs no login, because the app
// that got it in an envelope has none.
type Bodies struct {
	key   []byte
	read  func(ctx context.Context, seq int64) (event.Work, error)
	clock func() time.Time
	room  chan struct{}
}

// NewBodies signs with a key and reads events by their numbers.
func NewBodies(key []byte, read func(ctx context.Context, seq int64) (event.Work, error), clock func() time.Time) *Bodies {
	return &Bodies{key: key, read: read, clock: clock, room: make(chan struct{}, bodyReads)}
}

// Path is the address of an event's body until a time, in whole seconds.
func (b *Bodies) Path(seq int64, key event.Key, until time.Time) string {
	claim := make([]byte, 0, claimSize+sha256.Size)
	claim = binary.BigEndian.AppendUint64(claim, uint64(seq))
	claim = binary.BigEndian.AppendUint64(claim, uint64(until.Unix()))
	name := sha256.Sum256([]byte(key.String()))
	claim = append(claim, name[:nameSize]...)
	return BodyPath + base64.RawURLEncoding.EncodeToString(append(claim, b.sign(claim)...))
}

func (b *Bodies) sign(claim []byte) []byte {
	mac := hmac.New(sha256.New, b.key)
	mac.Write([]byte(bodyDomain))
	mac.Write(claim)
	return mac.Sum(nil)
}

// opened is what a token says.
type opened struct {
	seq   int64
	until time.Time
	name  []byte
}

// open reads a token that this server has signed. Nothing of another one is
// looked at.
func (b *Bodies) open(token string) (opened, bool) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(data) != claimSize+sha256.Size || strings.ContainsAny(token, "\r\n") {
		return opened{}, false
	}
	claim, signature := data[:claimSize], data[claimSize:]
	if !hmac.Equal(signature, b.sign(claim)) {
		return opened{}, false
	}
	return opened{
		seq:   int64(binary.BigEndian.Uint64(claim)),
		until: time.Unix(int64(binary.BigEndian.Uint64(claim[8:])), 0),
		name:  claim[16:],
	}, true
}

// ServeHTTP answers GET and HEAD. What is tampered with, over or unknown is one
// and the same 404.
func (b *Bodies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, found := strings.CutPrefix(r.URL.Path, BodyPath)
	wanted, genuine := b.open(token)
	if !found || !genuine || !b.clock().Before(wanted.until) {
		notFound(w)
		return
	}
	select {
	case b.room <- struct{}{}:
		defer func() { <-b.room }()
	default:
		w.Header().Set("Retry-After", "1")
		problem(w, http.StatusServiceUnavailable, "too many bodies are fetched at once")
		return
	}
	work, err := b.read(r.Context(), wanted.seq)
	switch {
	case errors.Is(err, event.ErrNotFound):
		notFound(w)
		return
	case err != nil:
		w.Header().Set("Retry-After", "1")
		problem(w, http.StatusServiceUnavailable, "the body can not be read now")
		return
	}
	name := sha256.Sum256([]byte(work.Key.String()))
	if !bytes.Equal(name[:nameSize], wanted.name) {
		notFound(w) // another event has the number: the file is another one
		return
	}
	b.answer(w, r, &work)
}

// answer sends the body as it came, and as nothing that a browser would show or
// run.
func (b *Bodies) answer(w http.ResponseWriter, r *http.Request, work *event.Work) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	body, err := deliver.BodyOf(work.Payload)
	if err != nil || len(work.Payload.Body) == 0 {
		header.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusGone)
		_, _ = w.Write([]byte(bodyGone))
		return
	}
	sum := sha256.Sum256(body)
	header.Set("Content-Type", deliver.TypeOf(&work.Payload))
	header.Set("Content-Disposition", "attachment")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("ETag", fmt.Sprintf(`"%x"`, sum))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(bodyTime))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

func notFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte("not found\n"))
}
