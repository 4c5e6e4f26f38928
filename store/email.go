package store

import (
	"encoding/json"
	"fmt"

	"creel/event"
)

// email inserts the delivery of a mail: to the destination that all mail goes
// to, with the recipient as its target. Its identity is key and recipient, not
// the text: a template that was changed since does not make the mail another.
func (a *application) email(t *tx, i int, e event.Email) (answer, error) {
	if err := mailable(e); err != nil {
		return answer{}, err
	}
	return a.send(t, e, outgoing{
		key: e.Key, rule: e.Rule, destination: event.Mail, target: e.To, message: a.texts[i],
		lane: e.Lane, laneSkip: e.LaneSkip,
	}, fmt.Sprintf("the mail to %s", quoted(e.To)))
}

// mailable objects to a mail that no row can hold.
func mailable(e event.Email) error {
	if e.To == "" || len(e.To) > event.MaxKey {
		return denied(e, "a mail needs a recipient of 1 to %d bytes, this one has %d", event.MaxKey, len(e.To))
	}
	return nil
}

// mailText writes what a mail says.
func mailText(e event.Email) string {
	text, _ := json.Marshal(event.MailText{Subject: e.Subject, Text: e.Text, HTML: e.HTML}) // of texts: it can be written
	return string(text)
}
