package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time, written with its unit: "10s", "5m", "168h",
// "7d" (a day is 24 hours).
type Duration time.Duration

// Size is a number of bytes, written with its unit: "256KB" is 256,000 bytes
// and "256KiB" is 262,144. KB, MB, GB and TB are powers of 1000; KiB, MiB, GiB
// and TiB are powers of 1024; "512B" is plain bytes.
type Size int64

// Rate is a number of things in a second. It is written with its unit: "50/s",
// "100/m", "1000/h". 0 is no limit and is written by leaving the key out.
type Rate float64

// StringList is a list that may be written as one string.
type StringList []string

// The errors of values. Each says how the value is written.
var (
	ErrDuration = errors.New(`a duration is a number with its unit and no space, such as "600s", "10m" or "7d"`)
	ErrSize     = errors.New(`a size is a whole number with its unit and no space, such as "512B", "256KB" (256,000 bytes) or "1MiB" (1,048,576 bytes)`)
	ErrRate     = errors.New(`a rate is a number above 0, a slash and s, m or h, such as "50/s" or "100/m"`)
)

// ParseDuration reads "10s", "1h30m", "7d". A number without a unit, a space
// and a sign are errors.
func ParseDuration(text string) (Duration, error) {
	var sum time.Duration
	rest := text
	for {
		digits := leading(rest, "0123456789.")
		unit := leadingNot(rest[len(digits):], "0123456789.")
		part, err := durationPart(digits, unit)
		if err != nil || sum > math.MaxInt64-part {
			return 0, ErrDuration
		}
		sum += part
		if rest = rest[len(digits)+len(unit):]; rest == "" {
			return Duration(sum), nil
		}
	}
}

func durationPart(digits, unit string) (time.Duration, error) {
	if digits == "" || unit == "" {
		return 0, ErrDuration
	}
	if unit != "d" {
		return time.ParseDuration(digits + unit)
	}
	days, err := strconv.ParseFloat(digits, 64)
	if err != nil || days > 36500 {
		return 0, ErrDuration
	}
	return time.Duration(days * float64(24*time.Hour)), nil
}

// String writes the duration as ParseDuration reads it.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDuration(string(text))
	return err
}

// sizeUnits is in the order in which String tries them.
func sizeUnits() []struct {
	name  string
	bytes int64
} {
	return []struct {
		name  string
		bytes int64
	}{
		{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9},
		{"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1},
	}
}

// ParseSize reads "512B", "256KB", "1MiB". A number without a unit, a
// fraction, a space and a sign are errors.
func ParseSize(text string) (Size, error) {
	digits := leading(text, "0123456789")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, ErrSize
	}
	for _, unit := range sizeUnits() {
		if text[len(digits):] == unit.name && n <= math.MaxInt64/unit.bytes {
			return Size(n * unit.bytes), nil
		}
	}
	return 0, ErrSize
}

// String writes the size as ParseSize reads it, in the largest unit that
// keeps it whole.
func (s Size) String() string {
	for _, unit := range sizeUnits() {
		if s != 0 && int64(s)%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", int64(s)/unit.bytes, unit.name)
		}
	}
	return "0B"
}

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSize(string(text))
	return err
}

// ParseRate reads "50/s", "100/m", "1000/h".
func ParseRate(text string) (Rate, error) {
	digits, unit, _ := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || leading(digits, "0123456789.") != digits || n <= 0 || n > 1e9 {
		return 0, ErrRate
	}
	switch unit {
	case "s":
		return Rate(n), nil
	case "m":
		return Rate(n / 60), nil
	case "h":
		return Rate(n / 3600), nil
	}
	return 0, ErrRate
}

// String writes the rate as ParseRate reads it, and "" where there is none.
func (r Rate) String() string {
	if r <= 0 {
		return ""
	}
	for _, unit := range []struct {
		name  string
		times float64
	}{{"s", 1}, {"m", 60}, {"h", 3600}} {
		n := float64(r) * unit.times
		if whole := math.Round(n); whole >= 1 && math.Abs(n-whole) < 1e-9*whole {
			return strconv.FormatFloat(whole, 'f', -1, 64) + "/" + unit.name
		}
	}
	return strconv.FormatFloat(float64(r), 'f', -1, 64) + "/s"
}

// MarshalText implements encoding.TextMarshaler.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRate(string(text))
	return err
}

// UnmarshalTOML implements toml.Unmarshaler.
func (l *StringList) UnmarshalTOML(value any) error {
	switch v := value.(type) {
	case string:
		*l = StringList{v}
		return nil
	case []any:
		list := make(StringList, len(v))
		for i, element := range v {
			text, ok := element.(string)
			if !ok {
				return fmt.Errorf("element %d is %s, not text", i, kindOf(element))
			}
			list[i] = text
		}
		*l = list
		return nil
	}
	return fmt.Errorf("%s is not text or a list of texts", kindOf(value))
}

// leading returns the longest start of the text that is made of the set.
func leading(text, set string) string {
	return text[:len(text)-len(strings.TrimLeft(text, set))]
}

// leadingNot returns the start of the text up to the first of the set.
func leadingNot(text, set string) string {
	if i := strings.IndexAny(text, set); i >= 0 {
		return text[:i]
	}
	return text
}
