package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/mattn/go-isatty"

	"creel/event"
)

// eventLine is an event as --json prints it. Fields are only ever added.
type eventLine struct {
	Key        event.Key    `json:"key"`
	Source     string       `json:"source"`
	Account    string       `json:"account"`
	ID         string       `json:"id"`
	Type       string       `json:"type"`
	Object     string       `json:"object"`
	Version    string       `json:"version,omitempty"`
	State      event.State  `json:"state"`
	Run        int          `json:"run"`
	Attempts   int          `json:"attempts"`
	Duplicates int          `json:"duplicates"`
	Origin     event.Origin `json:"origin"`
	ReceivedAt string       `json:"received_at"`
	NextAt     string       `json:"next_attempt_at,omitempty"`
	FinishedAt string       `json:"finished_at,omitempty"`
	Error      string       `json:"error"`
}

func lineOf(e event.Event) eventLine {
	id := e.Key.ID
	if e.LongID != "" {
		id = e.LongID
	}
	return eventLine{Key: e.Key, Source: e.Key.Source, Account: e.Key.Account, ID: id, Type: e.Type,
		Object: e.Object, Version: e.Version, State: e.State, Run: e.Run, Attempts: e.Attempts,
		Duplicates: e.Duplicates, Origin: e.Origin, ReceivedAt: stamp(e.ReceivedAt), NextAt: stamp(e.NextAt),
		FinishedAt: stamp(e.FinishedAt), Error: e.Error}
}

// deliveryLine is a delivery as --json prints it. Fields are only ever added.
type deliveryLine struct {
	ID          int64               `json:"id"`
	Event       event.Key           `json:"event"`
	Rule        string              `json:"rule"`
	Destination string              `json:"destination"`
	Key         string              `json:"key"`
	WebhookID   string              `json:"webhook_id"`
	State       event.DeliveryState `json:"state"`
	Run         int                 `json:"run"`
	Attempts    int                 `json:"attempts"`
	Status      int                 `json:"status"`
	Error       string              `json:"error"`
	CreatedAt   string              `json:"created_at"`
	NextAt      string              `json:"next_attempt_at,omitempty"`
	FinishedAt  string              `json:"finished_at,omitempty"`
}

func lineOfDelivery(d event.Delivery) deliveryLine {
	key := d.Key
	if d.LongKey != "" {
		key = d.LongKey
	}
	return deliveryLine{ID: d.ID, Event: d.Event, Rule: d.Rule, Destination: d.Destination, Key: key, WebhookID: event.WebhookID(d.Key, d.Destination),
		State: d.State, Run: d.Run, Attempts: d.Attempts, Status: d.Status, Error: d.Error,
		CreatedAt: stamp(d.CreatedAt), NextAt: stamp(d.NextAt), FinishedAt: stamp(d.FinishedAt)}
}

// stamp writes a time as RFC 3339 in UTC, or nothing.
func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func (f *frame) printJSON(value any) error {
	encoder := json.NewEncoder(f.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// table prints rows in columns. Cells are made printable: what a sender wrote
// must not move the cursor of an operator's terminal. A terminal gets long
// cells cut; a file or a pipe gets all of them.
type table struct {
	w   *tabwriter.Writer
	cut int
}

// maxCell is how much of a text a table shows on a terminal, in characters.
const maxCell = 100

func newTable(out io.Writer, head ...string) *table {
	t := &table{w: tabwriter.NewWriter(out, 0, 8, 2, ' ', 0), cut: math.MaxInt}
	if file, ok := out.(*os.File); ok && isatty.IsTerminal(file.Fd()) {
		t.cut = maxCell
	}
	t.row(head...)
	return t
}

func (t *table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = shown(cell, t.cut)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t *table) flush() { _ = t.w.Flush() }

// printable is a text of one line that moves no cursor, cut to maxCell.
func printable(text string) string { return shown(text, maxCell) }

func shown(text string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n == most {
			b.WriteString("…")
			break
		}
		n++
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, "\\u%04x", r)
	}
	return b.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
