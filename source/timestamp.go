package source

import (
	"strconv"
	"time"
)

// unit is how a timestamp is written.
type unit string

const (
	seconds      unit = "s"
	milliseconds unit = "ms"
	rfc3339      unit = "rfc3339"
)

// window says how far a signed time may lie from ours. A side of 0 is not
// checked.
type window struct {
	unit  unit
	late  time.Duration
	early time.Duration
}

// parse reads a time in the scheme's own unit, never guessing it from the
// size of a number.
func (w window) parse(text string) (time.Time, bool) {
	if w.unit == rfc3339 {
		return parseRFC3339(text)
	}
	n, ok := digits(text)
	if !ok {
		return time.Time{}, false
	}
	if w.unit == milliseconds {
		return time.UnixMilli(n), true
	}
	return time.Unix(n, 0), true
}

// maxDigits keeps a number of milliseconds or seconds inside what a time can
// hold.
const maxDigits = 15

// digits reads a number that is nothing but digits: no sign, no space.
func digits(text string) (int64, bool) {
	if text == "" || len(text) > maxDigits {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// parseRFC3339 is stricter than time.Parse, which takes a comma before the
// fraction and one digit for an hour.
func parseRFC3339(text string) (time.Time, bool) {
	if len(text) < len("2006-01-02T15:04:05Z") || len(text) > 64 {
		return time.Time{}, false
	}
	for i, c := range []byte("0000-00-00T00:00:00") {
		if c == '0' && (text[i] < '0' || text[i] > '9') || c != '0' && text[i] != c {
			return time.Time{}, false
		}
	}
	if text[19] == ',' {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil
}

// check compares a signed time with ours, in the resolution of the signed one:
// the edges of the window are inside.
func (w window) check(signed, now time.Time) *refusal {
	switch w.unit {
	case seconds:
		now = time.Unix(now.Unix(), 0)
	case milliseconds:
		now = time.UnixMilli(now.UnixMilli())
	}
	age := now.Sub(signed)
	if w.late > 0 && age > w.late {
		return refuse(TooOld, "signed "+age.String()+" ago; the window is "+w.late.String())
	}
	// Sub stops at the shortest duration, which has no positive twin.
	if w.early > 0 && age < -w.early {
		return refuse(TooNew, "signed in our future by more than the window of "+w.early.String()+
			": compare the clocks, and the scheme's unit")
	}
	return nil
}
