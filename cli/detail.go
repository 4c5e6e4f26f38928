package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"creel/event"
	"creel/store"
)

// detailLine is one event whole, as --json prints it.
type detailLine struct {
	eventLine
	Header     string          `json:"header"`
	Body       string          `json:"body"` // text where the bytes are UTF-8
	BodyBase64 string          `json:"body_base64"`
	Part       string          `json:"part,omitempty"`
	Verdicts   []verdictLine   `json:"verdicts"`
	Deliveries []attemptedLine `json:"deliveries"`
	Conflicts  int             `json:"conflicts"`
	Actions    []event.Action  `json:"actions"`
}

type verdictLine struct {
	Run      int            `json:"run"`
	Rule     string         `json:"rule"`
	Decision event.Decision `json:"decision"`
	Reason   string         `json:"reason"`
	At       string         `json:"at"`
}

type attemptedLine struct {
	deliveryLine
	Tries []attemptLine `json:"tries"`
}

type attemptLine struct {
	Run        int           `json:"run"`
	Number     int           `json:"number"`
	Spent      bool          `json:"spent"`
	Start      string        `json:"start"`
	DurationMS int64         `json:"duration_ms"`
	Status     int           `json:"status"`
	Outcome    event.Outcome `json:"outcome"`
	Error      string        `json:"error"`
	Answer     string        `json:"answer"`
}

func (f *frame) showEvent(ctx context.Context, reader *store.Reader, text string) error {
	key, err := event.ParseKey(text)
	if err != nil {
		return usage("creel events", "%w", err)
	}
	detail, err := reader.Event(ctx, key)
	if errors.Is(err, event.ErrNotFound) {
		return nothing("creel events --source " + key.Source)
	}
	if err != nil {
		return failed("", "%w", err)
	}
	line := detailOf(&detail)
	if f.asJSON {
		return f.printJSON(line)
	}
	f.printDetail(&line)
	return nil
}

func detailOf(d *store.EventDetail) detailLine {
	line := detailLine{eventLine: lineOf(d.Work.Event), Header: d.Header, Part: d.Part,
		BodyBase64: base64.StdEncoding.EncodeToString(d.Body), Conflicts: d.OtherBodies, Actions: d.Actions,
		Verdicts: []verdictLine{}, Deliveries: []attemptedLine{}}
	if utf8.Valid(d.Body) {
		line.Body = string(d.Body)
	}
	for _, v := range d.Verdicts {
		line.Verdicts = append(line.Verdicts, verdictLine{v.Run, v.Rule, v.Decision, v.Reason, stamp(v.At)})
	}
	for _, delivery := range d.Deliveries {
		attempted := attemptedLine{deliveryLine: lineOfDelivery(delivery.Delivery), Tries: []attemptLine{}}
		for _, a := range delivery.Attempts {
			attempted.Tries = append(attempted.Tries, attemptLine{a.Run, a.Number, a.Spent, stamp(a.Start),
				a.Duration.Milliseconds(), a.Status, a.Outcome, a.Error, a.Answer})
		}
		line.Deliveries = append(line.Deliveries, attempted)
	}
	return line
}

func (f *frame) printDetail(line *detailLine) {
	facts := newTable(f.out, "EVENT", line.Key.String())
	for _, fact := range [][2]string{
		{"type", line.Type}, {"object", line.Object}, {"version", line.Version},
		{"state", string(line.State)}, {"reason", line.Error}, {"received", line.ReceivedAt},
		{"next attempt", line.NextAt}, {"finished", line.FinishedAt},
	} {
		if fact[1] != "" {
			facts.row(fact[0], fact[1])
		}
	}
	facts.row("attempts", fmt.Sprintf("%d in run %d", line.Attempts, line.Run))
	facts.row("duplicates", fmt.Sprintf("%d; other bodies under this key: %d", line.Duplicates, line.Conflicts))
	facts.flush()
	f.printVerdicts(line.Verdicts)
	f.printAttempts(line.Deliveries)
	fmt.Fprintf(f.out, "\n%s\n\n%s\n", terminalText(strings.TrimSuffix(line.Header, "\n")), f.shownBody(line))
}

func (f *frame) printVerdicts(verdicts []verdictLine) {
	if len(verdicts) == 0 {
		return
	}
	fmt.Fprintln(f.out)
	rows := newTable(f.out, "RUN", "RULE", "DECISION", "REASON")
	for _, v := range verdicts {
		rows.row(fmt.Sprint(v.Run), v.Rule, string(v.Decision), v.Reason)
	}
	rows.flush()
}

func (f *frame) printAttempts(deliveries []attemptedLine) {
	for _, d := range deliveries {
		fmt.Fprintf(f.out, "\nDelivery %d to %s: %s, webhook-id %s\n", d.ID, printable(d.Destination), d.State, d.WebhookID)
		rows := newTable(f.out, "RUN", "TRY", "START", "TOOK", "STATUS", "OUTCOME", "ERROR")
		for _, a := range d.Tries {
			rows.row(fmt.Sprint(a.Run), fmt.Sprint(a.Number), a.Start, fmt.Sprintf("%d ms", a.DurationMS),
				fmt.Sprint(a.Status), string(a.Outcome), a.Error)
		}
		rows.flush()
	}
}

// maxShown is how much of a body the terminal gets, in bytes; --json has all.
const maxShown = 16 << 10

func (f *frame) shownBody(line *detailLine) string {
	if line.Body == "" && line.BodyBase64 != "" {
		return "(not UTF-8 text; --json has the bytes in body_base64)"
	}
	if len(line.Body) > maxShown {
		return terminalText(line.Body[:maxShown]) + fmt.Sprintf("\n… %d bytes more; --json has all", len(line.Body)-maxShown)
	}
	return terminalText(line.Body)
}

// terminalText keeps line breaks and tabs and makes the rest printable.
func terminalText(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || r >= ' ' && r != 0x7f && !(r >= 0x80 && r < 0xa0) && r != 0x2028 && r != 0x2029 {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, "\\u%04x", r)
	}
	return b.String()
}
