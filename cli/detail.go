package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"creel/admin"
	"creel/app"
	"creel/event"
	"creel/store"
)

func (f *frame) showEvent(ctx context.Context, reader *store.Reader, s *setup, text string) error {
	key, err := lookedAt(ctx, reader, "creel events", text)
	if err != nil {
		return err
	}
	detail, err := reader.Event(ctx, key)
	if errors.Is(err, event.ErrNotFound) {
		return nothing("creel events --source " + key.Source)
	}
	if err != nil {
		return failed("", "%w", err)
	}
	hidden, _ := app.RedactionsOf(s.config) // what is wrong hides more
	if len(s.faults) > 0 {
		hidden = app.HideCarried(&detail)
	}
	whole := app.DetailOf(&detail, hidden)
	line := admin.LineOfDetail(&whole)
	if f.asJSON {
		return f.printJSON(line)
	}
	f.printDetail(&line)
	return nil
}

func (f *frame) printDetail(line *admin.DetailLine) {
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
	f.printEffects(line.Effects)
	f.printAttempts(line.Deliveries)
	if !carries(line.Header, line.BodyBase64) {
		fmt.Fprintln(f.out, "\nWhat it carried is not here any more: it was removed after the retention, or never kept because its type is ignored.")
	} else {
		fmt.Fprintf(f.out, "\n%s\n\n%s\n", terminalText(strings.TrimSuffix(line.Header, "\n")), f.shownBody(line.Body, line.BodyBase64))
	}
	f.printOthers(line)
}

func (f *frame) printVerdicts(verdicts []admin.VerdictLine) {
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

func (f *frame) printAttempts(deliveries []admin.AttemptedLine) {
	for _, d := range deliveries {
		fmt.Fprintf(f.out, "\nDelivery %d to %s: %s, webhook-id %s\n", d.ID, printable(whereTo(d.Destination, d.Target)), d.State, d.WebhookID)
		rows := newTable(f.out, "RUN", "TRY", "START", "TOOK", "STATUS", "OUTCOME", "ERROR", "ANSWER")
		for _, a := range d.Tries {
			rows.row(fmt.Sprint(a.Run), fmt.Sprint(a.Number), a.Start, fmt.Sprintf("%d ms", a.DurationMS),
				fmt.Sprint(a.Status), string(a.Outcome), a.Error, admin.AnswerLine(a.Answer))
		}
		rows.flush()
		if hint := admin.SecretHint(event.Delivery{Destination: d.Destination, Target: d.Target, Status: d.Status}); hint != "" {
			fmt.Fprintln(f.out, printable(hint))
		}
	}
}

// maxShown is how much of a body the terminal gets, in bytes; --json has all.
const maxShown = 16 << 10

func (f *frame) shownBody(body, bytes string) string {
	if body == "" && bytes != "" {
		return "(not UTF-8 text; --json has the bytes in body_base64)"
	}
	if len(body) > maxShown {
		return terminalText(body[:maxShown]) + "\n… " + plural(len(body)-maxShown, "byte", "bytes") + " more; --json has all"
	}
	return terminalText(body)
}

// carries tells whether a request is still here: one has headers at the least.
func carries(header, bytes string) bool { return header != "" || bytes != "" }

// printOthers shows the other bodies that came under the event's key, and
// where each begins to differ.
func (f *frame) printOthers(line *admin.DetailLine) {
	for i, other := range line.Others {
		fmt.Fprintf(f.out, "\nOther body %d of %d, which is not used: came %s, first at %s, last at %s; ", i+1, line.Conflicts,
			plural(other.Seen, "time", "times"), other.FirstAt, other.LastAt)
		switch {
		case !carries(other.Header, other.BodyBase64):
			fmt.Fprintln(f.out, "it was removed after the retention")
			continue
		case !carries(line.Header, line.BodyBase64):
			fmt.Fprint(f.out, "the one that is used is not here any more")
		default:
			fmt.Fprint(f.out, differs(line.Body, other.Body))
		}
		fmt.Fprintf(f.out, "\n\n%s\n", f.shownBody(other.Body, other.BodyBase64))
	}
	if left := line.Conflicts - len(line.Others); left > 0 && len(line.Others) > 0 {
		fmt.Fprintf(f.out, "\n%s came and %s not kept.\n", plural(left, "more body", "more bodies"), map[bool]string{true: "was", false: "were"}[left == 1])
	}
}

// around is how much of a body is shown from where it differs, in characters.
const around = 60

// differs says from where on two texts are not the same.
func differs(first, other string) string {
	if first == "" || other == "" {
		return "one of the two is no text"
	}
	a, b := []rune(first), []rune(other)
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	from := max(0, at-around/3)
	show := func(text []rune) string { return shown(string(text[min(from, len(text)):]), around) }
	return fmt.Sprintf("it differs from character %d on:\n  used   %s\n  other  %s", at+1, show(a), show(b))
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
