package event

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// FailureKind is what of a dead letter is dead.
type FailureKind string

// The kinds of failures.
const (
	FailedEvent    FailureKind = "event"
	FailedDelivery FailureKind = "delivery"
)

// Failure is what dead letters have in common that failed alike: a group on
// the page.
type Failure struct {
	ID          int64       `json:"id"`
	Kind        FailureKind `json:"kind"`
	Source      string      `json:"source"`
	Destination string      `json:"destination,omitempty"` // of deliveries
	StatusClass int         `json:"status_class"`          // 4 of a delivery that was answered with 404; 0 where there was no such answer
	Text        string      `json:"text"`                  // the error without what differs from one to the next
	FirstAt     time.Time   `json:"first_at"`              // when one first failed so, whatever became of it
	LastAt      time.Time   `json:"last_at"`
	Dead        int         `json:"dead"`            // how many are dead letters now
	Hours       []HourCount `json:"hours,omitempty"` // how many failed so in each of the last hours, oldest first
}

// HourCount is how often something happened within one hour.
type HourCount struct {
	Hour time.Time `json:"hour"`
	N    int       `json:"n"`
}

// MaxFailureText bounds Failure.Text, in bytes.
const MaxFailureText = 200

// Fingerprint is the identity of a failure: what is equal for all that failed
// alike.
func (f Failure) Fingerprint() [16]byte {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		string(f.Kind), f.Source, f.Destination, strconv.Itoa(f.StatusClass), f.Text,
	}, "\x00")))
	return [16]byte(sum[:16])
}

// FailureOf says how a dead letter failed: the error it has, and the status of
// its last attempt (0 where there was none).
func FailureOf(kind FailureKind, source, destination string, status int, text string) Failure {
	class := status / 100
	if class < 1 || class > 5 {
		class = 0
	}
	return Failure{Kind: kind, Source: source, Destination: destination, StatusClass: class, Text: FailureText(text)}
}

// What stands in a FailureText for what differs from one failure to the next.
const (
	anyNumber  = "#"
	anyQuoted  = `"…"`
	anyID      = "‹id›"
	anyAddress = "‹address›"
	anyTime    = "‹time›"
	cutMark    = "…"
)

// FailureText is an error without what differs from one failure to the next:
// numbers, ids, quoted texts, addresses and times give way to marks, and white
// space is one blank. It has at most MaxFailureText bytes. Of a status behind
// "HTTP" the number stays.
func FailureText(text string) string {
	var b strings.Builder
	words := strings.Fields(unquoted(strings.ToValidUTF8(text, "?")))
	for i, word := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if i > 0 && words[i-1] == "HTTP" && len(strings.TrimRight(word, ":;,.")) == 3 && isNumber(word[:3]) {
			b.WriteString(word)
		} else {
			b.WriteString(wordOf(word))
		}
		if b.Len() > MaxFailureText {
			break
		}
	}
	return clip(b.String(), MaxFailureText)
}

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len(cutMark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], " ") + cutMark
}

// unquoted takes out what stands in quotes. An apostrophe within a word is
// none, and a quote without its end stays.
func unquoted(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		c := text[i]
		opens := (c == '"' || c == '`' || c == '\'') && (i == 0 || !isWord(text[i-1]))
		if opens {
			if end := closing(text[i+1:], c); end >= 0 {
				b.WriteString(anyQuoted)
				i += end + 2
				continue
			}
		}
		b.WriteByte(c)
		i++
	}
	return b.String()
}

// closing finds the quote that ends a quoted text; a backslash escapes one.
func closing(text string, quote byte) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote != '`':
			i++
		case text[i] == quote && (quote != '\'' || i+1 == len(text) || !isWord(text[i+1])):
			return i
		}
	}
	return -1
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_' || c >= 0x80
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNumber(word string) bool {
	for i := range len(word) {
		if !isDigit(word[i]) {
			return false
		}
	}
	return word != ""
}

// wordOf is a word without what is its own: the whole of an address or a time,
// and of other words the parts that are ids or numbers.
func wordOf(word string) string {
	open := len(word) - len(strings.TrimLeft(word, "({<,;"))
	shut := len(strings.TrimRight(word, ")}>,;:.!?"))
	if shut <= open {
		return word
	}
	before, core, behind := word[:open], word[open:shut], word[shut:]
	switch {
	case isTime(core):
		core = anyTime
	case isAddress(core):
		core = anyAddress
	case isUUID(core):
		core = anyID
	default:
		core = parts(core)
	}
	return before + core + behind
}

func isTime(word string) bool {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, time.TimeOnly, "2006/01/02", "2006-01-02T15:04:05"} {
		if _, err := time.Parse(layout, word); err == nil {
			return true
		}
	}
	return false
}

// isAddress tells of a URL, a mail address, and a host or IP address with its
// port.
func isAddress(word string) bool {
	if strings.Contains(word, "://") {
		return true
	}
	if name, host, is := strings.Cut(word, "@"); is {
		return name != "" && strings.Contains(host, ".")
	}
	host, port := word, ""
	if i := strings.LastIndexByte(word, ':'); i > 0 {
		host, port = word[:i], word[i+1:]
		if isNumber(port) && (strings.Contains(host, ".") || host == "localhost" || strings.HasSuffix(host, "]")) {
			return true
		}
	}
	dots := strings.Count(word, ".")
	return dots == 3 && isNumber(strings.ReplaceAll(word, ".", "")) || strings.Count(word, ":") > 3 && strings.Trim(word, "0123456789abcdefABCDEF:.[]") == ""
}

func isUUID(word string) bool {
	return len(word) == 36 && strings.Count(word, "-") == 4 && strings.Trim(word, "0123456789abcdefABCDEF-") == ""
}

// parts replaces the ids and numbers among the letters and digits of a word.
func parts(word string) string {
	var b strings.Builder
	for i := 0; i < len(word); {
		end := i
		for end < len(word) && isWord(word[end]) {
			end++
		}
		if end == i {
			b.WriteByte(word[i])
			i++
			continue
		}
		b.WriteString(partOf(word[i:end]))
		i = end
	}
	return b.String()
}

// partOf is a run of letters and digits. One with a digit among its letters is
// an id, unless it is as short as a word like sha256 or v2, whose digits alone
// are a number.
func partOf(part string) string {
	digits, letters := 0, 0
	for i := range len(part) {
		if isDigit(part[i]) {
			digits++
		} else if part[i] != '_' {
			letters++
		}
	}
	switch {
	case digits == 0:
		return part
	case letters == 0 || letters+digits < 8 && !strings.Contains(part, "_"):
		return numbers(part)
	}
	if prefix, rest, is := strings.Cut(part, "_"); is && rest != "" && !strings.ContainsAny(prefix, "0123456789") {
		return prefix + "_" + anyID
	}
	return anyID
}

func numbers(part string) string {
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		if !isDigit(part[i]) {
			b.WriteByte(part[i])
		} else if i == 0 || !isDigit(part[i-1]) {
			b.WriteString(anyNumber)
		}
	}
	return b.String()
}
