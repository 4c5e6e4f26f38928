package deliver

import (
	"fmt"
	"strconv"

	"creel/event"
	"creel/path"
)

// shipmentNames are the plain names that the templates of a destination may
// use, beside its settings.
func shipmentNames() []string {
	return append(append(path.EventNames(), "rule", "key", "delivery", "attempt"), event.AlertNames()...)
}

// places are what templates find in one shipment. It is not safe for concurrent
// use.
type places struct {
	*event.Shipment
	doc    *path.Document
	alert  event.Alert
	tenant string
}

// placesOf reads a shipment for the templates of its destination. An alert has
// no event, so that no body is missing to it.
func (d *Destination) placesOf(s *event.Shipment) (*places, error) {
	p := &places{Shipment: s}
	payload := s.Payload
	if s.Alert != 0 {
		var err error
		if p.alert, err = event.AlertOf(s.Message); err != nil {
			return nil, err
		}
		payload.Body = []byte("null")
	}
	if d.tenant != nil {
		p.tenant = d.tenant(s.Event.Source, s.Event.Account)
	}
	p.doc = path.NewDocument(payload)
	return p, nil
}

// text is what stands at a piece of a template. A place where nothing stands is
// path.ErrMissing, unless it is optional.
func (p *places) text(piece path.Piece) (string, error) {
	text, ok, err := piece.Text(p.doc, p.name)
	if err == nil && !ok && !piece.Optional {
		err = &path.PlaceError{Place: piece.Place(), Err: path.ErrMissing}
	}
	return text, err
}

// name gives the text of a plain name. Only the account of an event may be
// empty, as in rules.
func (p *places) name(name string) (string, bool) {
	text := p.named(name)
	return text, text != "" || name == "account" && p.Shipment.Alert == 0
}

func (p *places) named(name string) string {
	switch name {
	case "attempt":
		return strconv.Itoa(p.Tries)
	case "type":
		return p.Type // of an alert too: what happened to the incident
	case "delivery":
		return event.WebhookID(p.Key, p.Destination)
	case "key":
		if p.LongKey != "" {
			return p.LongKey
		}
		return p.Key
	}
	if p.Shipment.Alert != 0 {
		return p.alert.Name(name)
	}
	switch name {
	case "rule":
		return p.Rule
	case "source":
		return p.Event.Source
	case "account":
		return p.Event.Account
	case "tenant":
		return p.tenant
	case "id":
		if p.LongID != "" {
			return p.LongID
		}
		return p.Event.ID
	case "object":
		return p.Object
	case "version":
		return p.Version
	case "event":
		return p.Event.String()
	}
	return ""
}

// under names the key of the configuration whose template failed.
func under(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", key, err)
}
