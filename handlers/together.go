package handlers

import (
	"fmt"
	"strconv"

	"creel/event"
)

const (
	// maxEffects bounds what a handler returns for one event. All of it is
	// stored in one transaction, and a sender's request may wait for that: so
	// many records take about a tenth of a second.
	maxEffects = 10_000
	// maxReturned bounds the texts of them together, in bytes.
	maxReturned = 16 << 20
)

// identity is what the store knows an effect by.
type identity struct{ kind, key, to string }

// together looks at the effects of one return beside each other. Two that have
// one identity are one operation: the store would do the first, and take the
// second for a repetition of it.
func together(effects []event.Effect) error {
	size := 0
	seen := make(map[identity]string, len(effects))
	for i, effect := range effects {
		if size += textSize(effect); size > maxReturned {
			return fmt.Errorf("returns effects with more than %d bytes of text", maxReturned)
		}
		id, message, lost := repeated(effect)
		if id.kind == "" {
			continue
		}
		if before, twice := seen[id]; twice && (lost || before != message) {
			return fmt.Errorf("effect %d: is a second %s under the key %s, and one key is one operation: give each a key of its own",
				i+1, id.kind, strconv.QuoteToGraphic(clip(id.key, 100)))
		}
		seen[id] = message
	}
	return nil
}

// repeated tells what a second effect of the same identity would come to. lost
// says that it can not be the same thing said twice; elsewhere that is told by
// the message. The zero identity is that of a kind which the store compares
// with what is there: a second one that differs is a mismatch.
func repeated(effect event.Effect) (id identity, message string, lost bool) {
	switch e := effect.(type) {
	case event.Grant:
		return identity{"grant", e.Key, ""}, "", true
	case event.SQL:
		return identity{"sql", e.Key, ""}, "", true
	case event.Email:
		return identity{"email", e.Key, e.To}, strconv.Quote(e.Subject) + strconv.Quote(e.Text) + e.HTML, false
	case event.Run:
		return identity{"run", e.Key, e.Destination}, e.Message(), false
	}
	return identity{}, "", false
}

// textSize is how many bytes of text an effect has.
func textSize(effect event.Effect) int {
	fields := func(size int, fields []event.Field) int {
		for _, f := range fields {
			size += len(f.Name) + len(f.Value)
		}
		return size
	}
	switch e := effect.(type) {
	case event.Forward:
		return len(e.Key)
	case event.Record:
		return fields(len(e.Key)+len(e.Of), e.Fields)
	case event.Grant:
		return len(e.Key) + len(e.To) + len(e.Unit) + len(e.Reverse)
	case event.SetState:
		return fields(len(e.Key)+len(e.Object)+len(e.To)+len(e.Version), e.Fields)
	case event.SQL:
		size := len(e.Key)
		for _, text := range e.Statements {
			size += len(text)
		}
		return fields(size, e.Params)
	case event.Email:
		return len(e.Key) + len(e.To) + len(e.Subject) + len(e.Text) + len(e.HTML)
	case event.Run:
		return fields(len(e.Key), e.Fields)
	case event.File:
		return len(e.Key) + len(e.Path)
	}
	return 0
}
