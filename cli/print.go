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

	"creel/admin"
)

// stamp writes a time as RFC 3339 in UTC, or nothing.
func stamp(at time.Time) string { return admin.Stamp(at) }

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

// plural is a number before what is counted.
func plural[N int | int64](n N, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
