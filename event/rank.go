package event

import (
	"fmt"
	"strings"
	"time"
)

// maxVersion bounds a version, in bytes: what is longer orders nothing.
const maxVersion = 256

// Rank turns a version into a text that sorts as the versions do: integers and
// decimals of any length by value, RFC 3339 times by instant. Times sort after
// numbers. false says that the text is no version.
func Rank(version string) (rank string, ok bool) {
	if version == "" || len(version) > maxVersion {
		return "", false
	}
	if rank, ok = rankNumber(version); ok {
		return rank, true
	}
	// RFC 3339 allows a lower-case t and z, and time.Parse does not.
	at, err := time.Parse(time.RFC3339Nano, strings.ToUpper(version))
	if err != nil || at.UTC().Year() < 0 || at.UTC().Year() > 9999 {
		return "", false
	}
	return "t" + at.UTC().Format("2006-01-02T15:04:05.000000000"), true
}

// rankNumber writes sign, number of integer digits and digits, so that the
// longer number is the greater one; those of a negative number are turned
// around, with an end that sorts behind every digit.
func rankNumber(text string) (string, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, dotted := strings.Cut(digits, ".")
	if whole == "" || dotted && fraction == "" || !onlyDigits(whole) || !onlyDigits(fraction) {
		return "", false
	}
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	rank := fmt.Sprintf("%04d%s.%s", len(whole), whole, fraction)
	if !negative || whole == "" && fraction == "" {
		return "n1" + rank, true
	}
	return "n0" + strings.Map(turned, rank) + "~", true
}

func turned(r rune) rune {
	if r < '0' || r > '9' {
		return r
	}
	return '9' - (r - '0')
}

func onlyDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }
