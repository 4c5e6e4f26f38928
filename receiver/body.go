package receiver

import (
	"errors"
	"io"
	"net/http"
	"os"
)

// The ways in which a body can fail to arrive.
var (
	errTooLarge   = errors.New("the body is over the limit of its source")
	errOverBudget = errors.New("too much memory is used by requests that are being received")
	errTooSlow    = errors.New("the body did not arrive in time")
	errTruncated  = errors.New("the body ended early or is malformed")
)

// body is a request body on its way in, with the memory charged for it.
type body struct {
	data    []byte
	charged int64
	budget  *budget
}

// release gives the memory back. The bytes may live on: by then they belong
// to the store, whose queue has its own bound.
func (b *body) release() {
	b.budget.give(b.charged)
	b.charged = 0
}

// charge counts more bytes as held by the request.
func (b *body) charge(more int64) error {
	if !b.budget.take(more, b.charged+more) {
		return errOverBudget
	}
	b.charged += more
	return nil
}

// grow makes room for more bytes: capacity in all, charged before it is
// allocated.
func (b *body) grow(capacity int) error {
	if err := b.charge(int64(capacity - cap(b.data))); err != nil {
		return err
	}
	bigger := make([]byte, len(b.data), capacity)
	copy(bigger, b.data)
	b.data = bigger
	return nil
}

// read takes the whole body in, or fails with one of the errors above. A body
// whose declared length is over the limit is refused without reading a byte
// (and so without a 100 Continue); memory grows with what has arrived, not
// with what was promised. A small body of known length is one exact
// allocation.
func (b *body) read(r *http.Request, limit int64) error {
	if r.ContentLength > limit {
		return errTooLarge
	}
	if r.ContentLength == 0 {
		return nil
	}
	want := limit + 1 // one byte more tells that a chunked body is too long
	if r.ContentLength > 0 {
		want = r.ContentLength
	}
	if err := b.grow(int(min(want, firstBuffer))); err != nil {
		return err
	}
	for {
		n, err := r.Body.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		switch {
		case int64(len(b.data)) > limit:
			return errTooLarge
		case int64(len(b.data)) == r.ContentLength:
			return nil
		case err == io.EOF:
			b.data = fitted(b.data)
			return nil
		case err != nil:
			return readError(err)
		}
		if len(b.data) < cap(b.data) {
			continue
		}
		if err := b.grow(int(min(want, 4*int64(cap(b.data))))); err != nil {
			return err
		}
	}
}

// fitted drops slack that would otherwise live as long as the event waits for
// its worker.
func fitted(data []byte) []byte {
	if cap(data)-len(data) <= len(data)/4 {
		return data
	}
	return append(make([]byte, 0, len(data)), data...)
}

func readError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errTooSlow
	}
	return errTruncated
}
