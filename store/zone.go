package store

import (
	"fmt"
	"math"

	"creel/event"
)

const (
	// zoneSize is how many events a zone has. A search looks at every zone, and
	// walks through all of one that it can not rule out; filing one holds up
	// the writer for a millisecond or two.
	zoneSize = 1024
	// zoneTypes is how many types of one source a zone tells apart.
	zoneTypes = 32
	// zonesAtOnce bounds how many one transaction files, after rows came in
	// another way than through the inbox.
	zonesAtOnce = 8
	manyTypes   = "*"

	sqlFiled      = `SELECT ifnull(max(zone), -1) + 1 FROM zone_words`
	sqlZoneEvents = `SELECT source, type, object, received_at FROM event WHERE seq > ? AND seq <= ?`
	sqlZoneValues = `SELECT field, value FROM event_index WHERE event > ? AND event <= ?`
	sqlInsertZone = `INSERT INTO zone (zone, source, type, n, first_at, last_at) VALUES (?,?,?,?,?,?)`
	sqlZoneWords  = `INSERT INTO zone_words (zone, bits) VALUES (?,?)`
	sqlIndexValue = `INSERT INTO event_index (event, field, value) VALUES (?,?,?) ON CONFLICT DO NOTHING`
)

// enter makes a new event findable: it stores the values that its source lists,
// and files the zone that it completes. Rows are numbered without gaps, so one
// event completes a zone.
func enter(t *tx, seq int64, item *event.Item) error {
	for _, v := range item.Index {
		if len(v.Value) > event.MaxIndexValue {
			continue // it can not be asked for either
		}
		if _, err := t.exec(sqlIndexValue, seq, v.Field, v.Value); err != nil {
			return fmt.Errorf("store an indexed value: %w", err)
		}
	}
	if seq%zoneSize != 0 {
		return nil
	}
	return fileZones(t, seq/zoneSize)
}

// fileZones files the zones before one that are not filed yet.
func fileZones(t *tx, before int64) error {
	var first int64
	err := t.query(sqlFiled, nil, func(r row) error {
		first = r.int64(0)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for zones: %w", err)
	}
	for n := first; n < min(before, first+zonesAtOnce); n++ {
		if err := fileZone(t, n); err != nil {
			return fmt.Errorf("file zone %d: %w", n, err)
		}
	}
	return nil
}

// zoned is what a zone says about a source and type.
type zoned struct {
	n           int
	first, last int64
}

func (z *zoned) count(at int64) {
	if z.n == 0 || at < z.first {
		z.first = at
	}
	if z.n == 0 || at > z.last {
		z.last = at
	}
	z.n++
}

func fileZone(t *tx, n int64) error {
	type label struct{ source, kind string }
	zone, types := map[label]*zoned{}, map[string]int{}
	words := map[uint64]struct{}{}
	from, to := n*zoneSize, (n+1)*zoneSize
	err := t.query(sqlZoneEvents, []any{from, to}, func(r row) error {
		l := label{r.text(0), r.text(1)}
		z := zone[l]
		if z == nil {
			if types[l.source]++; types[l.source] > zoneTypes {
				l.kind = manyTypes
				z = zone[l]
			}
		}
		if z == nil {
			z = &zoned{}
			zone[l] = z
		}
		z.count(r.int64(3))
		if object := r.text(2); object != "" {
			for _, word := range objectWords(object) {
				words[word] = struct{}{}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = t.query(sqlZoneValues, []any{from, to}, func(r row) error {
		words[valueWord(r.text(0), r.text(1))] = struct{}{}
		return nil
	})
	if err != nil {
		return err
	}
	for l, z := range zone {
		if _, err := t.exec(sqlInsertZone, n, l.source, l.kind, z.n, z.first, z.last); err != nil {
			return err
		}
	}
	_, err = t.exec(sqlZoneWords, n, bloomOf(words))
	return err
}

// The lengths of the beginnings of objects that can be looked for.
const shortStart, longStart = 8, 16

// objectWords are what an object is found by: itself, and its beginnings. Of a
// short one some are equal.
func objectWords(object string) [3]uint64 {
	whole := wordOf("o", object)
	words := [3]uint64{whole, whole, whole}
	for i, n := range []int{shortStart, longStart} {
		if len(object) >= n {
			words[i+1] = wordOf("p", object[:n])
		}
	}
	return words
}

// startWord is what all objects with a beginning have in common; false where
// it is too short to be told.
func startWord(start string) (uint64, bool) {
	switch {
	case len(start) >= longStart:
		return wordOf("p", start[:longStart]), true
	case len(start) >= shortStart:
		return wordOf("p", start[:shortStart]), true
	}
	return 0, false
}

func valueWord(field, value string) uint64 { return wordOf("v", field+"\x00"+value) }

// wordOf is a hash that stays the same for ever: FNV-1a, and a finish that
// spreads it over all bits (https://github.com/aappleby/smhasher, fmix64).
func wordOf(kind, text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(kind) {
		h = (h ^ uint64(kind[i])) * 1099511628211
	}
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

const (
	bloomBits   = 10 // a word; one zone in a hundred is walked through in vain
	bloomHashes = 7
)

// bloomOf is a filter that has all of the words.
func bloomOf(words map[uint64]struct{}) []byte {
	bits := make([]byte, (len(words)*bloomBits+7)/8)
	for word := range words {
		for i := range uint32(bloomHashes) {
			bit := bloomBit(word, i, len(bits))
			bits[bit/8] |= 1 << (bit % 8)
		}
	}
	return bits
}

// mayHave tells whether a word may be in a filter; no is certain.
func mayHave(bits []byte, word uint64) bool {
	if len(bits) == 0 {
		return false
	}
	for i := range uint32(bloomHashes) {
		if bit := bloomBit(word, i, len(bits)); bits[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

func bloomBit(word uint64, i uint32, bytes int) uint64 {
	a, b := uint32(word), uint32(word>>32)|1
	return uint64(a+i*b) * uint64(bytes*8) >> 32
}

// zoneOf is the zone of an event.
func zoneOf(seq int64) int64 { return (seq - 1) / zoneSize }

const noBefore = math.MaxInt64
