package deliver

import (
	"time"

	"creel/event"
)

// CanTell is nil, or why the templates of the destination make no request of an
// alert: what one of them names is not in it.
func (d *Destination) CanTell(s event.Shipment, now time.Time) error {
	_, err := d.contentOf(&s, now)
	return err
}
