package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/event"
	"creel/store"
)

// conflictLine is an event under whose key other bodies came.
type conflictLine struct {
	admin.EventLine
	Conflicts int `json:"conflicts"`
}

func (f *frame) conflicts() *cobra.Command {
	return f.keptCommand("conflicts", "Events under whose key other bodies came, newest first",
		"  creel conflicts\n  creel events stripe/acct_1/evt_1M2    (the bodies)", noArgs,
		func(ctx context.Context, _ []string, limit int) error {
			return keptList[store.Conflicted, conflictLine]{
				head: []string{"RECEIVED", "EVENT", "TYPE", "STATE", "CONFLICTS"},
				read: func(ctx context.Context, r *store.Reader, page event.Page) ([]store.Conflicted, error) {
					return r.Conflicts(ctx, page)
				},
				id:   func(e store.Conflicted) int64 { return e.Seq },
				line: func(e store.Conflicted) conflictLine { return conflictLine{admin.LineOf(e.Event), e.Conflicts} },
				cells: func(l conflictLine) []string {
					return []string{l.ReceivedAt, l.Key.String(), l.Type, string(l.State), strconv.Itoa(l.Conflicts)}
				},
				none: "creel events: no event came with another body",
			}.print(ctx, f, limit)
		})
}

func (f *frame) duplicates() *cobra.Command {
	return f.keptCommand("duplicates", "Events that came more than once, the one that came again last first",
		"  creel duplicates --limit 10", noArgs,
		func(ctx context.Context, _ []string, limit int) error {
			var after event.Event
			return keptList[event.Event, admin.EventLine]{
				head: []string{"RECEIVED", "EVENT", "TYPE", "STATE", "DUPLICATES"},
				read: func(ctx context.Context, r *store.Reader, page event.Page) ([]event.Event, error) {
					list, err := r.Duplicates(ctx, after, page.Limit)
					if len(list) > 0 {
						after = list[len(list)-1]
					}
					return list, err
				},
				id:   func(e event.Event) int64 { return e.Seq }, // after has the place
				line: admin.LineOf,
				cells: func(l admin.EventLine) []string {
					return []string{l.ReceivedAt, l.Key.String(), l.Type, string(l.State), strconv.Itoa(l.Duplicates)}
				},
				none: "creel events: none came twice",
			}.print(ctx, f, limit)
		})
}
