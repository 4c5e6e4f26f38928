package event

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// IndexMatch asks for events whose body has a value at a place that their
// source lists in its index.
type IndexMatch struct {
	Field string `json:"field"` // as the source lists it: body.data.object.customer
	Value string `json:"value"`
}

// IndexValue is a value of an event at a place that its source lists.
type IndexValue = IndexMatch

// MaxIndexValue is how much of an indexed value is kept and compared, in bytes.
const MaxIndexValue = 256

// MaxQuery bounds the text of a query, in bytes.
const MaxQuery = 4096

// ErrBadQuery says that a text is not a query; the rest of the error says why
// and what would be one.
var ErrBadQuery = errors.New("not a query")

// queryNames are the words before a colon, in the order in which a query is
// written.
func queryNames() []string {
	return []string{"state", "source", "account", "type", "id", "object", "destination", "error", "failure", "kind", "key", "since", "until"}
}

// ParseQuery reads what an operator types to find events:
//
//	source:stripe type:invoice.* error:"connect refused" since:24h cus_1
//
// A filter is a name, a colon and a value, which stands in quotes where it has
// blanks (\" and \\ inside them are a quote and a backslash). All filters hold.
// A name that begins with "body.", "header.", "query." or "form." is a place in
// the body that the source lists in its index. since and until take a date, a
// time, or how long before now (24h, 7d). A word without a name is an id or an
// object, or their beginning. An empty query selects everything.
//
// Errors wrap ErrBadQuery.
func ParseQuery(text string, now time.Time) (Selector, error) {
	var s Selector
	if len(text) > MaxQuery {
		return s, fmt.Errorf("%w: it is longer than %d bytes", ErrBadQuery, MaxQuery)
	}
	if !utf8.ValidString(text) {
		return s, fmt.Errorf("%w: it is not UTF-8", ErrBadQuery)
	}
	seen := map[string]bool{}
	for rest := strings.TrimLeft(text, QueryBlanks); rest != ""; rest = strings.TrimLeft(rest, QueryBlanks) {
		name, value, behind, err := nextTerm(rest)
		if err != nil {
			return Selector{}, err
		}
		if seen[name] {
			if name == "" {
				return Selector{}, fmt.Errorf("%w: %q is a second word without a name; quotes hold blanks together", ErrBadQuery, value)
			}
			return Selector{}, fmt.Errorf("%w: %s: stands twice", ErrBadQuery, name)
		}
		seen[name], rest = true, behind
		if err := s.take(name, value, now); err != nil {
			return Selector{}, err
		}
	}
	if !s.Since.IsZero() && !s.Until.IsZero() && !s.Until.After(s.Since) {
		return Selector{}, fmt.Errorf("%w: until is not after since: nothing can have been received between", ErrBadQuery)
	}
	return s, nil
}

// QueryBlanks are the characters between the terms of a query; any other blank
// is a part of what it stands in.
const QueryBlanks = " \t\r\n"

// nextTerm cuts the first term off.
func nextTerm(text string) (name, value, rest string, err error) {
	end := strings.IndexAny(text, QueryBlanks+`:"`)
	if end > 0 && text[end] == ':' {
		name, text = text[:end], text[end+1:]
		if !isQueryName(name) {
			return "", "", "", unknownName(name)
		}
	}
	if strings.HasPrefix(text, `"`) {
		if value, rest, err = quoted(text); err != nil {
			return "", "", "", err
		}
	} else {
		end = strings.IndexAny(text, QueryBlanks)
		if end < 0 {
			end = len(text)
		}
		value, rest = text[:end], text[end:]
		if strings.Contains(value, `"`) {
			return "", "", "", fmt.Errorf(`%w: a quote within %s: write "…" around all of it, and \" for a quote`, ErrBadQuery, value)
		}
	}
	if rest != "" && !strings.ContainsAny(rest[:1], QueryBlanks) {
		return "", "", "", fmt.Errorf("%w: there is no blank behind the quote: %s", ErrBadQuery, rest)
	}
	if value == "" && name != "" {
		return "", "", "", fmt.Errorf("%w: nothing stands behind %s:", ErrBadQuery, name)
	}
	if value == "" {
		return "", "", "", fmt.Errorf("%w: there is nothing between the quotes", ErrBadQuery)
	}
	return name, value, rest, nil
}

func quoted(text string) (value, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:], nil
		case c == '\\' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", fmt.Errorf("%w: a quote is not closed: %s", ErrBadQuery, text)
}

// Filters lists the names of a query that are the same for every source, in the
// order in which a query is written.
func Filters() []string { return queryNames() }

// Filter is one filter of a query, as ParseQuery reads it.
func Filter(name, value string) string { return name + ":" + quote(value, false) }

func isQueryName(name string) bool { return slices.Contains(queryNames(), name) || IsIndexField(name) }

// IsIndexField tells whether a text may be a place in a request: whether it is
// one, and one that a source lists, is not decided here.
func IsIndexField(name string) bool {
	for _, root := range []string{"body.", "header.", "query.", "form."} {
		if strings.HasPrefix(name, root) && len(name) > len(root) {
			return true
		}
	}
	return false
}

func unknownName(name string) error {
	hint := strings.Join(queryNames(), ", ") + " or a place such as body.data.object.customer"
	if near := nearest(name, queryNames()); near != "" {
		hint = near
	}
	return fmt.Errorf("%w: %s: is not known; did you mean %s? A word with a colon stands in quotes", ErrBadQuery, name, hint)
}

// nearest is the name that begins as a word does, or that it begins with.
func nearest(word string, names []string) string {
	for _, name := range names {
		if len(word) >= 2 && (strings.HasPrefix(name, word) || strings.HasPrefix(word, name)) {
			return name
		}
	}
	return ""
}

// take sets one filter.
func (s *Selector) take(name, value string, now time.Time) (err error) {
	switch name {
	case "":
		s.Word = value
	case "state":
		s.State = State(value)
		if !slices.Contains(States(), s.State) {
			return fmt.Errorf("%w: state:%s is none of %s", ErrBadQuery, value, joinStates())
		}
	case "source":
		s.Source = value
	case "account":
		s.Account = value
	case "type":
		s.Type = value
	case "id":
		s.ID = value
	case "object":
		s.Object = value
	case "destination":
		s.Destination = value
	case "error":
		s.Error = value
	case "failure":
		if s.Failure, err = strconv.ParseInt(value, 10, 64); err != nil || s.Failure <= 0 {
			return fmt.Errorf("%w: failure:%s is not the number of a group", ErrBadQuery, value)
		}
	case "kind":
		s.Kind = FailureKind(value)
		if s.Kind != FailedEvent && s.Kind != FailedDelivery {
			return fmt.Errorf("%w: kind:%s is neither event nor delivery", ErrBadQuery, value)
		}
	case "key":
		var key Key
		if key, err = ParseKey(value); err == nil {
			s.Keys = []Key{key}
		}
	case "since":
		err = s.SetSince(value, now)
	case "until":
		err = s.SetUntil(value, now)
	default:
		if len(value) > MaxIndexValue {
			return fmt.Errorf("%w: the value of %s has more than %d bytes", ErrBadQuery, name, MaxIndexValue)
		}
		s.Index = append(s.Index, IndexMatch{Field: name, Value: value})
	}
	if err != nil {
		return fmt.Errorf("%w: %s:%w", ErrBadQuery, name, err)
	}
	return nil
}

func joinStates() string {
	names := make([]string, 0, len(States()))
	for _, s := range States() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// SetSince narrows to what was received at or after a moment, as ParseMoment
// reads it; "" is none.
func (s *Selector) SetSince(text string, now time.Time) error {
	return setMoment(&s.Since, &s.SinceAgo, text, now)
}

// SetUntil narrows to what was received before a moment, as SetSince.
func (s *Selector) SetUntil(text string, now time.Time) error {
	return setMoment(&s.Until, &s.UntilAgo, text, now)
}

func setMoment(at *time.Time, ago *int64, text string, now time.Time) (err error) {
	*at, *ago = time.Time{}, 0
	if text == "" {
		return nil
	}
	before, relative := agoOf(text, now)
	if !relative {
		*at, err = ParseMoment(text, now)
		return err
	}
	*at, *ago = before, int64(now.Sub(before)/time.Second)
	return nil
}

// agoOf reads how long before now.
func agoOf(text string, now time.Time) (time.Time, bool) {
	if days, is := strings.CutSuffix(text, "d"); is {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 100_000 {
			return now.UTC().AddDate(0, 0, -n), true
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago).UTC(), true
	}
	return time.Time{}, false
}

// ParseMoment reads a date, a time, or how long before now: 2026-11-01,
// 2026-11-01T10:00:00Z, 24h, 7d. A time without a zone is UTC.
func ParseMoment(text string, now time.Time) (time.Time, error) {
	if before, relative := agoOf(text, now); relative {
		return before, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1 && at.Year() <= 9999 {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not a time: 2026-11-01, 2026-11-01T10:00:00Z, 24h or 7d", text)
}

// Query writes a selector as ParseQuery reads it, with times to the
// nanosecond. What no query can say (more than one key, a run, the bounds of a
// plan) is left out.
func (s Selector) Query() string {
	var terms []string
	add := func(name, value string) {
		if value != "" {
			terms = append(terms, name+":"+quote(value, false))
		}
	}
	add("state", string(s.State))
	add("source", s.Source)
	add("account", s.Account)
	add("type", s.Type)
	add("id", s.ID)
	add("object", s.Object)
	add("destination", s.Destination)
	add("error", s.Error)
	if s.Failure != 0 {
		add("failure", strconv.FormatInt(s.Failure, 10))
	}
	add("kind", string(s.Kind))
	if len(s.Keys) == 1 {
		add("key", s.Keys[0].String())
	}
	if !s.Since.IsZero() {
		add("since", s.Since.UTC().Format(time.RFC3339Nano))
	}
	if !s.Until.IsZero() {
		add("until", s.Until.UTC().Format(time.RFC3339Nano))
	}
	for _, m := range s.Index {
		add(m.Field, m.Value)
	}
	if s.Word != "" {
		terms = append(terms, quote(s.Word, true))
	}
	return strings.Join(terms, " ")
}

// quote writes a value; one that stands alone must not look like a name.
func quote(value string, alone bool) string {
	if !strings.ContainsAny(value, QueryBlanks+`"`) && !(alone && strings.Contains(value, ":")) {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}
