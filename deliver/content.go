package deliver

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"creel/event"
)

// content is what one attempt sends, and where.
type content struct {
	way      way
	body     []byte
	kind     string // Content-Type; "" is the sender's
	own      bool   // the request is the owner's: the sender's headers stay here
	replaced bool   // the body is not the sender's
	worded   []headerLineOf
}

// contentOf makes the request of a shipment. It is the same for each attempt,
// but for what says that it is another one. An error says that no request can be
// made of the shipment.
func (d *Destination) contentOf(s *event.Shipment, now time.Time) (content, error) {
	c := content{way: way{&d.target, d.pool}}
	if d.address != nil || d.draft != nil || d.worded != nil || s.Alert != 0 {
		if err := d.fillIn(&c, s); err != nil {
			return content{}, err
		}
	}
	switch {
	case c.own:
	case d.method == http.MethodGet:
		c.own, c.replaced = true, true
	default:
		var err error
		if c.body, err = partOf(s.Payload); err != nil {
			return content{}, err
		}
		if d.maxBody > 0 && len(c.body) > d.maxBody {
			return c, d.wrap(&c, s, now)
		}
	}
	return c, nil
}

// fillIn makes what templates say of the request. An alert has no body but its
// own.
func (d *Destination) fillIn(c *content, s *event.Shipment) error {
	held := *s // the shipment itself stays off the heap where nothing is filled in
	p, err := d.placesOf(&held)
	if err != nil {
		return err
	}
	if d.address != nil {
		if c.way, err = d.wayOf(p); err != nil {
			return under("url", err)
		}
	}
	for _, h := range d.worded {
		value, err := h.of(p)
		if err != nil {
			return under(h.key, err)
		}
		c.worded = append(c.worded, headerLineOf{h.name, value})
	}
	switch {
	case d.method == http.MethodGet:
		return nil
	case d.draft != nil:
		c.body, err = d.draft.of(p)
		c.kind, c.own, c.replaced = d.draft.kind, true, true
	case s.Alert != 0:
		c.body, c.kind, c.own, c.replaced = []byte(s.Message), typeJSON, true, true
	}
	return err
}

// wayOf is where the values of a shipment lead.
func (d *Destination) wayOf(p *places) (way, error) {
	u, err := d.address.of(p)
	if err != nil {
		return way{}, err
	}
	t, err := newTarget(d.method, u, d.host)
	if err != nil {
		return way{}, errNoURL
	}
	if d.pools == nil {
		return way{&t, d.pool}, nil
	}
	return way{&t, d.pools.of(&t)}, nil
}

// mostHeaderWords bounds a header that a template makes, in bytes.
const mostHeaderWords = 4 << 10

var errHeaderLong = fmt.Errorf("the header is over %d bytes", mostHeaderWords)

// headerWords is a header of the owner's that is a template.
type headerWords struct {
	name, key string
	value     wording
}

type headerLineOf struct{ name, value string }

// of makes the value for a shipment. Control characters, which no header can
// carry, are percent-encoded.
func (h *headerWords) of(p *places) (string, error) {
	text, err := h.value.render(p)
	if err != nil {
		return "", err
	}
	if len(text) > mostHeaderWords {
		return "", errHeaderLong
	}
	if !isFieldValue(text) {
		var b strings.Builder
		for i := range len(text) {
			if c := text[i]; c < ' ' || c == 0x7f {
				fmt.Fprintf(&b, "%%%02X", c)
			} else {
				b.WriteByte(c)
			}
		}
		text = b.String()
	}
	return strings.Trim(text, " \t"), nil
}
