package store

import (
	"bytes"
	"fmt"

	"creel/event"
)

const sqlAsked = `SELECT ` + actionColumns + `, once_what FROM action WHERE once = ?`

// asked finds the action that was asked for before under the same key, as it
// stands now; event.ErrOtherRequest where something else was asked for then. It
// is looked up in the transaction that would write the action: of two that ask
// at once the second finds the first.
func asked(t *tx, a *event.Action) (before event.Action, found bool, err error) {
	if a.Once == (event.Once{}) {
		return event.Action{}, false, nil
	}
	other := false
	err = t.query(sqlAsked, []any{a.Once.By[:]}, func(r row) error {
		before, found = actionOf(r), true
		other = !bytes.Equal(r.blob(len(r.values)-1), a.Once.What[:])
		return nil
	})
	switch {
	case err != nil:
		return event.Action{}, false, fmt.Errorf("look for the same request: %w", err)
	case other:
		return event.Action{}, false, fmt.Errorf("action %d: %w", before.ID, event.ErrOtherRequest)
	}
	return before, found, nil
}
