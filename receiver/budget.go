package receiver

import "sync/atomic"

const (
	// smallBody is the size up to which a request may use the reserve.
	smallBody = 64 << 10
	// firstBuffer is what a body gets before any of it has arrived.
	firstBuffer = 16 << 10
	// defaultMemory bounds the bodies of all requests together.
	defaultMemory = 64 << 20
)

// budget bounds the memory of the bodies that are being received, all
// requests together. Large bodies can not use the last eighth of it, so that
// slow large uploads never shut the door for the small ones.
type budget struct {
	limit   int64
	reserve int64
	used    atomic.Int64
}

func newBudget(limit int64) *budget {
	return &budget{limit: limit, reserve: limit / 8}
}

// take charges n more bytes for a request that will then hold total bytes. It
// tells whether there was room; where there was none nothing is charged.
func (b *budget) take(n, total int64) bool {
	limit := b.limit
	if total > smallBody {
		limit -= b.reserve
	}
	if b.used.Add(n) > limit {
		b.used.Add(-n)
		return false
	}
	return true
}

// give returns what take charged.
func (b *budget) give(n int64) { b.used.Add(-n) }
