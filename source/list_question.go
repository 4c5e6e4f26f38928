package source

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// question is one request for a page: an address, and in a POST the members of
// the JSON object that it carries.
type question struct {
	lister  *Lister
	method  string
	target  *url.URL
	members url.Values // nil in a GET, whose parameters are in the address
}

// first is the question for the first page of a span.
func (l *Lister) first(base *url.URL, bounds Span) question {
	q := question{lister: l, method: l.method, target: base}
	if l.method == http.MethodPost {
		q.members = url.Values{}
	}
	values := url.Values{}
	for name := range l.query {
		values.Set(name, l.query.Get(name))
	}
	if l.size != "" {
		values.Set(l.size, strconv.Itoa(l.pageSize))
	}
	if l.next != "time" {
		// Whether the ends belong to the span is the sender's to say: what is
		// around it is left out here.
		bounds.From, bounds.Until = bounds.From.Add(-l.grain()), bounds.Until.Add(l.grain())
	}
	if l.from != "" {
		values.Set(l.from, l.stamp(bounds.From, false))
	}
	if l.to != "" {
		values.Set(l.to, l.stamp(bounds.Until, true))
	}
	return q.with(values)
}

// with is the question with further parameters.
func (q question) with(more url.Values) question {
	all := q.members
	if all == nil {
		all = q.target.Query()
	}
	values := url.Values{}
	for _, from := range []url.Values{all, more} {
		for name := range from {
			values[name] = from[name]
		}
	}
	if q.members != nil {
		q.members = values
		return q
	}
	target := *q.target
	target.RawQuery = values.Encode()
	q.target = &target
	return q
}

// turn is the question for the page that a text names.
func (q question) turn(text string) *question {
	next := q
	if q.lister.cursor != "" {
		next = q.with(url.Values{q.lister.cursor: {text}})
	}
	return &next
}

// body is the JSON object of a POST; nil in a GET.
func (q question) body() ([]byte, error) {
	if q.members == nil {
		return nil, nil
	}
	whole := map[string]any{}
	for _, name := range sortedKeys(q.members) {
		steps := strings.Split(name, ".")
		object := whole
		for _, step := range steps[:len(steps)-1] {
			inner, ok := object[step].(map[string]any)
			if !ok && object[step] != nil {
				return nil, fmt.Errorf("%s leads through a member that is no object", name)
			}
			if !ok {
				inner = map[string]any{}
				object[step] = inner
			}
			object = inner
		}
		last := steps[len(steps)-1]
		if object[last] != nil {
			return nil, fmt.Errorf("%s is an object already", name)
		}
		object[last] = q.lister.member(name, q.members.Get(name))
	}
	return json.Marshal(whole)
}

// member is a parameter as a member: a number where the list takes one.
func (l *Lister) member(name, text string) any {
	moment := (name == l.from || name == l.to) && l.unit != "rfc3339"
	if name == l.size || moment || name == l.cursor && l.next == "page" {
		return json.Number(text)
	}
	return text
}

// name tells two questions apart.
func (q question) name() string {
	return q.target.String() + " " + q.members.Encode()
}

// request makes it a request.
func (q question) request(ctx context.Context) (*http.Request, error) {
	raw, err := q.body()
	if err != nil {
		return nil, fmt.Errorf("build the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, q.target.String(), bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("build the request: %w", err)
	}
	req.Header = q.lister.header.Clone()
	if raw != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// stamp writes a time as the sender reads it, rounded away from the span.
func (l *Lister) stamp(at time.Time, up bool) string {
	grain := l.grain()
	cut := at.UTC().Truncate(grain)
	if up && cut.Before(at) {
		cut = cut.Add(grain)
	}
	switch l.unit {
	case "ms":
		return strconv.FormatInt(cut.UnixMilli(), 10)
	case "rfc3339":
		return cut.Format(time.RFC3339)
	}
	return strconv.FormatInt(cut.Unix(), 10)
}

func (l *Lister) grain() time.Duration {
	if l.unit == "ms" {
		return time.Millisecond
	}
	return time.Second
}

// moment reads the time of an item; zero where it is none. Senders write RFC
// 3339 with a blank for the T, with a zone of hours alone, and without a zone,
// which is UTC then.
func (l *Lister) moment(text string) time.Time {
	if number, err := strconv.ParseInt(text, 10, 64); err == nil {
		if l.unit == "ms" {
			return time.UnixMilli(number).UTC()
		}
		return time.Unix(number, 0).UTC()
	}
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}
