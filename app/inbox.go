package app

import (
	"context"

	"creel/event"
)

// inbox stands before the store: an event whose source and type no rule names
// is stored as ignored at once, with its body, instead of being claimed only
// to find that out. A replay looks at it again under the rules of that day.
type inbox struct {
	app *App
}

// Accept implements receiver.Inbox.
func (i inbox) Accept(ctx context.Context, receipt *event.Receipt) (event.Accepted, error) {
	rules := i.app.snapshot.Load().Rules
	for n := range receipt.Items {
		item := &receipt.Items[n]
		if item.State != event.Pending {
			continue
		}
		if reason, unmatched := rules.Unmatched(item.Key, item.Type); unmatched {
			item.State, item.Error = event.Ignored, reason
		}
	}
	return i.app.store.Accept(ctx, receipt)
}
