package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"creel/event"
)

// firstSignals are the five that an owner looks at first, each at its worst:
// what fires, or what is nearest to it.
func firstSignals(all []event.Signal) []event.Signal {
	var five []event.Signal
	for _, name := range event.Signals()[:5] {
		worst, found := event.Signal{Name: name}, false
		for _, s := range all {
			if s.Name == name && (!found || nearer(s, worst)) {
				worst, found = s, true
			}
		}
		five = append(five, worst)
	}
	return five
}

func nearer(a, b event.Signal) bool {
	if a.Firing != b.Firing {
		return a.Firing
	}
	return share(a) > share(b)
}

func share(s event.Signal) float64 {
	if s.Threshold <= 0 {
		return -1
	}
	return s.Value / s.Threshold
}

// measured is a value of a signal in words.
func measured(value float64, unit string) string {
	switch unit {
	case "seconds":
		return long(time.Duration(value * float64(time.Second)))
	case "percent":
		return fmt.Sprintf("%.1f %%", value)
	case "bytes":
		return size(int64(value))
	case "":
		return count(int64(value))
	}
	return count(int64(value)) + " " + event.UnitOf(float64(int64(value)), unit)
}

// standing is a signal in one word: colour never stands alone.
func standing(s event.Signal) string {
	switch {
	case s.Firing:
		return "firing"
	case s.Threshold == 0 && s.Unit == "":
		return "unknown"
	case s.Threshold == 0:
		return "off"
	}
	return "ok"
}

// calmness says in a few words what there is beside the signals that fire, where
// there is no room for all.
func calmness(five []event.Signal) string {
	quiet := 0
	for _, s := range five {
		if !s.Firing {
			quiet++
		}
	}
	if quiet == len(five) {
		return "No signal fires"
	}
	return fmt.Sprintf("%d others do not fire", quiet)
}

// signalRow is a signal with everything that it measures.
type signalRow struct {
	Title     string
	Word      string // how the worst of them stands
	Firing    bool
	Threshold string // "" where each has its own, or none
	Cells     []signalCell
}

// signalCell is one measure of a signal.
type signalCell struct {
	event.Signal
	Word    string
	Differs bool // it stands otherwise than the worst
	Own     bool // its threshold is its own
}

// signalRows puts the measures of each signal together, in the order of the
// signals. What fires comes first in its row.
func signalRows(all []event.Signal) []signalRow {
	var rows []signalRow
	for _, name := range event.Signals() {
		row := signalRow{Title: titleOf(name)}
		thresholds, units := map[float64]bool{}, map[string]bool{}
		for _, s := range all {
			if s.Name != name {
				continue
			}
			cell := signalCell{Signal: s, Word: standing(s)}
			if s.Threshold != 0 {
				thresholds[s.Threshold], units[s.Unit] = true, true
				if row.Threshold = measured(s.Threshold, s.Unit); len(units) > 1 {
					row.Threshold = count(int64(s.Threshold)) // events here, deliveries there
				}
			}
			row.Firing = row.Firing || s.Firing
			row.Cells = append(row.Cells, cell)
		}
		if len(row.Cells) == 0 {
			continue
		}
		slices.SortStableFunc(row.Cells, func(a, b signalCell) int { return cmp.Compare(rank(a.Word), rank(b.Word)) })
		row.Word = row.Cells[0].Word
		for i := range row.Cells {
			c := &row.Cells[i]
			c.Differs, c.Own = c.Word != row.Word, len(thresholds) > 1 && c.Threshold != 0
		}
		if len(thresholds) > 1 {
			row.Threshold = ""
		}
		rows = append(rows, row)
	}
	return rows
}

// rank puts what fires first and what is off last.
func rank(word string) int { return slices.Index([]string{"firing", "ok", "off", "unknown"}, word) }

// titleOf is the name of a signal as the page writes it.
func titleOf(name event.SignalName) string {
	switch name {
	case event.SignalOldest:
		return "Oldest unprocessed"
	case event.SignalDead:
		return "New dead letters"
	case event.SignalDuplicates:
		return "Duplicates"
	case event.SignalSilence:
		return "Silence"
	case event.SignalGap:
		return "Gap"
	case event.SignalSuccess:
		return "Delivery success"
	case event.SignalRejects:
		return "Rejected requests"
	case event.SignalFailures:
		return "Processing failures"
	case event.SignalGuesses:
		return "Login failures"
	case event.SignalDisk:
		return "Free disk"
	case event.SignalWAL:
		return "WAL"
	case event.SignalStore:
		return "Store unavailable"
	}
	return string(name)
}
