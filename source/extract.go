package source

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"creel/event"
	"creel/path"
)

// maxText is how long a type, object or version may be, in bytes.
const maxText = event.MaxKey

// events finds the events of a verified request. What can not be read is kept
// too, dead with its reason and under the hash of its own bytes: an authentic
// request is never thrown away.
func (s *Source) events(v *view) (items []event.Item, skipped int) {
	if err := s.readable(v); err != nil {
		return []event.Item{s.dead(v, err)}, 0
	}
	if s.scheme.split.IsZero() {
		item, ok := s.item(v)
		if !ok {
			return nil, 1
		}
		return []event.Item{item}, 0
	}
	elements, missed, err := v.doc.Each(s.scheme.split)
	switch {
	case err != nil:
		return []event.Item{s.dead(v, err)}, 0
	case len(elements) > maxEvents:
		return []event.Item{s.dead(v, fmt.Errorf("the request holds %d events, more than %d", len(elements), maxEvents))}, 0
	}
	items = make([]event.Item, 0, len(elements)+1)
	if missed > 0 {
		// A part of the request that is no event of its own must not vanish.
		items = append(items, s.dead(v, fmt.Errorf("%s: %w, %d times", s.scheme.split, path.ErrMissing, missed)))
	}
	for _, element := range elements {
		one := &view{src: s, req: v.req, body: v.body, signed: v.signed, url: v.url, labels: v.labels, given: v.given,
			claims: v.claims, doc: v.doc.Of(element), raw: element.Raw}
		if item, ok := s.item(one); ok {
			items = append(items, item)
		} else {
			skipped++
		}
	}
	return items, skipped
}

// readable checks the whole body where identities stand in it, and finds the
// text that the event is.
func (s *Source) readable(v *view) error {
	if v.form || !s.scheme.readsBody {
		return nil
	}
	text, err := v.doc.Body()
	if err != nil {
		return err
	}
	if err := v.doc.Check(); err != nil {
		return err
	}
	if v.doc.Payload().Part != "" {
		v.raw = text
	}
	return nil
}

// item makes one event; false says that it is of the other mode.
func (s *Source) item(v *view) (event.Item, bool) {
	if s.otherMode(v) {
		return event.Item{}, false
	}
	item := event.Item{Part: v.doc.Payload().Part, State: event.Pending, Content: s.contentOf(v)}
	err := s.describe(v, &item)
	if err == nil {
		err = s.identify(v, &item)
	}
	if s.ignores(item.Type) {
		item.State, item.DropBody = event.Ignored, true
		item.Error = "the source ignores this type"
		if err != nil {
			item.Key = event.Key{Source: s.name, ID: event.HashID(v.raw)}
		}
		return item, true
	}
	if err != nil {
		dead := s.dead(v, err)
		dead.Type, dead.Object, dead.Version, dead.Content = item.Type, item.Object, item.Version, item.Content
		return dead, true
	}
	if _, known := s.Tenant(item.Key.Account); !known {
		item.State = event.Dead
		item.Error = "the account is not in the source's accounts"
	}
	return item, true
}

// describe reads type, object and version.
func (s *Source) describe(v *view, item *event.Item) error {
	for _, part := range []struct {
		from choice
		word string
		to   *string
		fold bool
	}{
		{s.scheme.kind, "type", &item.Type, true},
		{s.scheme.object, "object", &item.Object, true},
		{s.scheme.version, "version", &item.Version, false},
	} {
		text, ok, err := v.first(part.from, false, part.word == "object")
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		v.setWord(part.word, text)
		if part.fold {
			text, _ = event.Fold(text)
		}
		if len(text) > maxText {
			return fmt.Errorf("the %s is longer than %d bytes", part.word, maxText)
		}
		*part.to = text
	}
	return nil
}

// errNoID says that an authentic event has nothing to be known by.
var errNoID = errors.New("no event id")

// identify reads account and id, which make the key.
func (s *Source) identify(v *view, item *event.Item) error {
	account, ok, err := v.first(s.scheme.account, true, true)
	if err != nil {
		return fmt.Errorf("no usable account: %w", err)
	}
	if ok {
		v.setWord("account", account)
	}
	id, ok, err := v.first(s.scheme.id, true, true)
	if v.given != "" {
		id, ok, err = v.given, true, nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNoID, err)
	}
	if !ok {
		return fmt.Errorf("%w: nothing stands at %s", errNoID, s.scheme.id.String())
	}
	item.Key.Source = s.name
	item.Key.Account, _ = event.Fold(account)
	item.Key.ID, item.LongID = event.Fold(id)
	return nil
}

// String lists the alternatives.
func (c choice) String() string {
	texts := make([]string, len(c))
	for i, t := range c {
		texts[i] = t.text
	}
	return strings.Join(texts, ", ")
}

// dead is an event that is kept and not processed.
func (s *Source) dead(v *view, why error) event.Item {
	return event.Item{
		Key:     event.Key{Source: s.name, ID: event.HashID(v.raw)},
		Part:    deadPart(v),
		State:   event.Dead,
		Error:   why.Error(),
		Content: sum16(v.raw),
	}
}

// deadPart names the part of the request, unless it could not be found there.
func deadPart(v *view) string {
	if _, err := v.doc.Body(); err != nil {
		return ""
	}
	return v.doc.Payload().Part
}

// otherMode tells whether the event is a test one on a live source, or the
// reverse. What says neither is taken.
func (s *Source) otherMode(v *view) bool {
	if s.mode == "any" {
		return false
	}
	at, err := v.look(s.scheme.live)
	if err != nil || !at.ok {
		return false
	}
	switch strings.ToLower(at.text) {
	case "true", "1", "live", "production", "prod":
		return s.mode == "test"
	case "false", "0", "test", "sandbox", "development":
		return s.mode == "live"
	}
	return false
}

func (s *Source) ignores(kind string) bool {
	for _, pattern := range s.ignore {
		if event.MatchGlob(pattern, kind) {
			return true
		}
	}
	return false
}

// contentOf identifies what an event says: its own bytes without the places
// that its sender changes from one delivery to the next.
func (s *Source) contentOf(v *view) [16]byte {
	if v.form {
		return sum16([]byte(s.stableForm(v)))
	}
	var cuts []span
	for _, p := range s.scheme.volatile {
		if !p.isBody() {
			continue
		}
		value, ok, err := v.doc.Get(p.path)
		if err == nil && ok {
			cuts = append(cuts, spanOf(v.raw, value.Raw))
		}
	}
	return sum16(without(v.raw, cuts))
}

func (s *Source) stableForm(v *view) string {
	var b strings.Builder
	path.Fields(string(v.body), func(name, value string) bool {
		for _, p := range s.scheme.volatile {
			if p.isForm() && p.path.Name() == name {
				return true
			}
		}
		fmt.Fprintf(&b, "%q=%q\n", name, value)
		return true
	})
	return b.String()
}

func sum16(data []byte) [16]byte {
	sum := sha256.Sum256(data)
	return [16]byte(sum[:16])
}

// span is a stretch of a text.
type span struct{ start, end int }

// spanOf finds the value that is a part of a text's memory. The same bytes may
// stand elsewhere in it: the memory tells which ones are meant.
func spanOf(text, value []byte) span {
	for from := 0; len(value) > 0; from++ {
		i := bytes.Index(text[from:], value)
		if i < 0 {
			break
		}
		if from += i; &text[from] == &value[0] {
			return span{start: from, end: from + len(value)}
		}
	}
	return span{}
}

// without leaves the spans out of a text.
func without(text []byte, cuts []span) []byte {
	if len(cuts) == 0 {
		return text
	}
	slices.SortFunc(cuts, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	out, at := make([]byte, 0, len(text)), 0
	for _, cut := range cuts {
		if cut.start >= at {
			out, at = append(out, text[at:cut.start]...), cut.end
		}
	}
	return append(out, text[at:]...)
}
