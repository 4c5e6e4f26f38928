package deliver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"creel/config"
	"creel/event"
)

// TypeEnvelope is the Content-Type of an envelope.
const TypeEnvelope = "application/vnd.creel.envelope+json"

// envelope stands for a body that is larger than its destination takes.
type envelope struct {
	Creel       string `json:"creel"` // "envelope"
	Event       string `json:"event"` // its key
	Type        string `json:"type"`
	Size        int    `json:"size"`         // of the body, in bytes
	SHA256      string `json:"sha256"`       // of the body, hex
	ContentType string `json:"content_type"` // of the body
	URL         string `json:"url"`          // where the body can be fetched
	ExpiresAt   string `json:"expires_at"`   // until then; RFC 3339, UTC
}

var errNoLink = errors.New("there is no server that its body could be fetched from")

// leastTTL is how much longer than its retry policy the URL of a body is good:
// for an app that keeps the envelope and works later.
const leastTTL = 24 * time.Hour

// size reads from which size on a body is fetched instead of sent.
func (c *compiler) size(d *Destination, cfg config.Destination, opt Options) {
	d.bodyTTL = c.duration("body_url_ttl", cfg.BodyURLTTL, opt.Schedule+leastTTL, 366*24*time.Hour)
	d.maxBody = int(cfg.MaxBody)
}

// wrap puts an envelope in the place of a body. The URL is good from this
// attempt on.
func (d *Destination) wrap(c *content, s *event.Shipment, now time.Time) error {
	if d.link == nil {
		return errNoLink
	}
	until := now.Add(d.bodyTTL).UTC().Truncate(time.Second)
	sum := sha256.Sum256(c.body)
	text, err := json.Marshal(envelope{
		Creel: "envelope", Event: s.Event.String(), Type: s.Type, Size: len(c.body), SHA256: hex.EncodeToString(sum[:]),
		ContentType: TypeOf(&s.Payload), URL: d.link(s.EventSeq, s.Event, until), ExpiresAt: until.Format(time.RFC3339),
	})
	if err != nil {
		return fmt.Errorf("writing an envelope: %w", err)
	}
	c.body, c.kind, c.replaced = text, TypeEnvelope, true
	return nil
}

// BodyOf is the body of a delivery, byte for byte as it came.
func BodyOf(payload event.Payload) ([]byte, error) { return partOf(payload) }

// TypeOf is the Content-Type that the body of a delivery has.
func TypeOf(payload *event.Payload) string {
	for line := range strings.Lines(payload.Header) {
		name, value, ok := headerLine(line)
		if !ok || name != "Content-Type" || value == "" {
			continue
		}
		if isElement(payload.Part) && !isJSON(value) {
			break
		}
		return value
	}
	if isElement(payload.Part) {
		return typeJSON
	}
	return "application/octet-stream"
}
