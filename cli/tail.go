package cli

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/event"
)

func (f *frame) tail() *cobra.Command {
	var filter admin.TailFilter
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Follow what happens: events, attempts, rejected requests, actions",
		Long: `Tail asks the running server what happens and prints a line for each event that
comes in or is decided, each attempt at a delivery, each rejected request and each
action of an operator, until Ctrl-C. What happened before is in creel events,
deliveries, rejects and audit. Where more happens than can be printed, a line
says how much was left out.`,
		Example: `  creel tail --source stripe
  creel tail --state dead --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkTailState(filter.State); err != nil {
				return err
			}
			return f.follow(cmd, filter)
		},
	}
	textVar(cmd, &filter.Source, "source", "source name")
	textVar(cmd, &filter.Type, "type", "event type, * matches anything (invoice.*)")
	textVar(cmd, &filter.State, "state", "state that an event or a delivery has come to: "+strings.Join(tailStates(), ", "))
	completes(cmd, "state", tailStates)
	return f.jsonFlag(cmd)
}

// tailStates are the states of events and of deliveries, each once.
func tailStates() []string {
	var names []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, state := range event.States() {
		add(string(state))
	}
	for _, state := range event.DeliveryStates() {
		add(string(state))
	}
	return names
}

func checkTailState(text string) error {
	if text == "" {
		return nil
	}
	for _, name := range tailStates() {
		if name == text {
			return nil
		}
	}
	return usage("one of "+strings.Join(tailStates(), ", "), "--state %q is not a state", text)
}

func (f *frame) follow(cmd *cobra.Command, filter admin.TailFilter) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, s, err := f.server(ctx)
	if err != nil {
		return err
	}
	if err := s.known(ctx, filter.Source, ""); err != nil {
		return err
	}
	begun := func() {
		if !f.asJSON {
			fmt.Fprintln(f.err, "Following what happens; Ctrl-C ends it.")
		}
	}
	err = client.Follow(ctx, filter, begun, f.tell)
	switch {
	case err == nil || ctx.Err() != nil:
		return nil
	case errors.Is(err, admin.ErrServerStopped):
		return failed("creel health --wait 30s, then creel tail again", "%w", err)
	}
	return failed("", "%w", err)
}

func (f *frame) tell(h *admin.Happening) error {
	if f.asJSON {
		return f.printJSON(h)
	}
	_, err := fmt.Fprintf(f.out, "%s  %-11s %s\n", stamp(h.At), word(h), strings.Join(aboutWhat(h), "  "))
	return err
}

// word is what happened, in the first column.
func word(h *admin.Happening) string {
	switch h.What {
	case admin.EventDecided, admin.DeliveryTried:
		return h.State
	}
	return string(h.What)
}

// aboutWhat is the rest of a line, from the narrow to the wide.
func aboutWhat(h *admin.Happening) []string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, printable(text))
		}
	}
	switch h.What {
	case admin.LeftOut:
		return []string{plural(h.Count, "line more", "lines more") + ": more happens than can be printed"}
	case admin.ActionDone:
		add(fmt.Sprintf("%s by %s, %d done", h.Action, h.Actor, h.Count))
		return parts
	case admin.RequestRefused:
		add(h.Source)
		add(h.Cause)
		add("from " + h.Peer)
		add(fmt.Sprintf("creel verify --drawer %d", h.Request))
		return parts
	}
	if h.Event != nil {
		add(h.Event.String())
	}
	add(h.Type)
	if h.What == admin.DeliveryTried {
		add("to " + whereTo(h.Destination, h.Target))
		add(fmt.Sprintf("attempt %d", h.Attempt))
		add(answered(h))
	}
	if !h.NextAt.IsZero() && h.State != string(event.Claimed) {
		add("next " + stamp(h.NextAt))
	}
	add(h.Error)
	return parts
}

// answered is what an attempt came to and how long it took.
func answered(h *admin.Happening) string {
	took := (time.Duration(h.Duration) * time.Millisecond).String()
	if h.Status > 0 {
		return fmt.Sprintf("%d in %s", h.Status, took)
	}
	return fmt.Sprintf("%s in %s", h.Outcome, took)
}
