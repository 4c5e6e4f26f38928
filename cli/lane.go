package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/event"
	"creel/store"
)

func (f *frame) lane() *cobra.Command {
	var limit uint
	cmd := &cobra.Command{
		Use:   "lane",
		Short: "List the lanes that a dead event or delivery holds up, and how many wait behind it",
		Long: `Events of a rule with order_by go one after another in their lane, and so do
their deliveries. A dead one, or a delivery in doubt, parks its lane until
somebody decides:

  creel lane retry LANE|KEY   run the event again that holds it up
  creel lane skip LANE|KEY    leave it dead and let the others pass
  creel discard KEY           give it up for good
  creel resolve               decide about a delivery in doubt`,
		Example: `  creel lane
  creel lane retry stripe/acct_1/sub_1Mo --reason "bug 412 fixed"
  creel lane skip stripe/acct_1/evt_1M2`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reader, _, err := f.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer reader.Close()
			return f.listLanes(cmd.Context(), reader, int(limit))
		},
	}
	limitFlag(cmd, &limit)
	cmd.AddCommand(f.laneAction("skip", "Let those pass that wait in a lane; what is dead stays so",
		"Skip leaves the head dead, where a replay finds it later, and lets those pass that wait behind it.", f.skipLane))
	cmd.AddCommand(f.laneAction("retry", "Run the event again that holds up a lane",
		"Retry replays the event that holds up a lane: it goes first, before those that wait.", f.retryLane))
	return f.jsonFlag(cmd)
}

func (f *frame) listLanes(ctx context.Context, reader *store.Reader, limit int) error {
	rows := newTable(f.out, "LANE", "AT", "HEAD", "STATE", "SINCE", "WAITING", "ERROR")
	if f.asJSON {
		rows = nil
	}
	count, after := 0, ""
	for {
		page := pageRows
		if limit > 0 {
			page = min(page, limit-count)
		}
		lanes, err := reader.Lanes(ctx, after, page)
		if err != nil {
			return failed("", "%w", err)
		}
		for _, l := range lanes {
			if l.Lane != after {
				count++
			}
			after = l.Lane
			if err := f.printLane(rows, l); err != nil {
				return err
			}
		}
		if len(lanes) == 0 || count == limit {
			break
		}
	}
	if count == 0 {
		return &exit{code: exitNothing, err: errors.New("no lane is parked")}
	}
	if rows != nil {
		rows.flush()
	}
	if count == limit && !f.asJSON {
		fmt.Fprintf(f.err, "The first %d; --limit 0 lists all.\n", limit)
	}
	return nil
}

func (f *frame) printLane(rows *table, l event.ParkedLane) error {
	if rows == nil {
		return f.printJSON(admin.LineOfLane(l))
	}
	at, head, waiting := "rules", l.Event.String(), strconv.Itoa(l.Waiting)
	if l.Destination != "" {
		at, head = l.Destination, fmt.Sprintf("delivery %d of %s", l.Delivery, head)
		if l.Target != "" {
			at += " " + l.Target
		}
	}
	if l.Waiting >= event.MaxWaiting {
		waiting += " or more"
	}
	rows.row(l.Lane, at, head, l.State, stamp(l.Since), waiting, l.Error)
	return nil
}

// laneAction is a command about the head of a lane, named by the lane or by
// the event.
func (f *frame) laneAction(name, short, long string, do func(context.Context, *store.Reader, string, string) error) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   name + " LANE|KEY",
		Short: short,
		Long:  long,
		Args:  oneArg("a lane as creel lane lists it, or the key of the event that holds it up"),
		RunE: func(cmd *cobra.Command, args []string) error {
			reader, _, err := f.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer reader.Close()
			return do(cmd.Context(), reader, args[0], reason)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}

func (f *frame) skipLane(ctx context.Context, reader *store.Reader, arg, reason string) error {
	action := f.action(event.ActionLaneSkip, reason)
	parked, err := reader.Lane(ctx, arg)
	if err != nil {
		return failed("", "%w", err)
	}
	if action.Selector.Keys = admin.LaneKeys(parked); len(parked) > 0 {
		action.Target = arg
		return f.bulkAction(ctx, action)
	}
	key, err := f.knownKey(ctx, reader, "creel lane skip", arg)
	if err != nil {
		return err
	}
	action.Selector.Keys = []event.Key{key}
	return f.bulkAction(ctx, action)
}

func (f *frame) retryLane(ctx context.Context, reader *store.Reader, arg, reason string) error {
	parked, err := reader.Lane(ctx, arg)
	if err != nil {
		return failed("", "%w", err)
	}
	if len(parked) == 0 {
		key, err := f.knownKey(ctx, reader, "creel lane retry", arg)
		if err != nil {
			return err
		}
		return f.bulk(ctx, event.ActionReplay, event.Selector{Keys: []event.Key{key}}, reason)
	}
	doubt := parked[0].Delivery
	parked = admin.LaneDead(parked)
	if len(parked) == 0 {
		return failed(fmt.Sprintf("creel resolve again %d, where it did not arrive", doubt), "delivery %d is in doubt: ask its destination whether it arrived", doubt)
	}
	return f.bulk(ctx, event.ActionReplay, event.Selector{Keys: admin.LaneKeys(parked)}, reason)
}

// knownKey reads the argument as the key of an event that there is.
func (f *frame) knownKey(ctx context.Context, reader *store.Reader, command, arg string) (event.Key, error) {
	key, err := event.ParseKey(arg)
	if err == nil {
		_, err = reader.Find(ctx, key)
	}
	if err == nil || !errors.Is(err, event.ErrNotFound) && !errors.Is(err, event.ErrBadKey) {
		return key, err
	}
	if errors.Is(err, event.ErrBadKey) {
		if act := actedOn(ctx, reader, command, arg); codeOf(act) == exitUsage && !errors.Is(act, event.ErrBadKey) {
			return key, act
		}
	}
	return key, &exit{code: exitNothing, err: fmt.Errorf("no lane %q is parked, and no event has that key", arg), hint: "creel lane"}
}
