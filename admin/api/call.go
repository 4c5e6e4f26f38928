package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"creel/admin/page"
	"creel/event"
)

// How many rows a page of a list has, and may have.
const (
	defaultRows = 50
	maxRows     = 200
)

// maxAsked bounds the body of a request, in bytes; a selection by key may name
// many.
const maxAsked = 1 << 20

// call is one request of somebody who was let in.
type call struct {
	api    *API
	route  route
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	params httprouter.Params
	who    caller
	now    time.Time
	query  url.Values
}

func (c *call) data() page.Data { return c.api.opt.Data }

// readQuery reads the parameters and refuses those that the route does not
// know: a filter with a typo would select everything.
func (c *call) readQuery() (err error) {
	if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		return invalid("escape them as in a form", "the parameters can not be read")
	}
	for name, values := range c.query {
		if !slices.Contains(c.route.query, name) {
			hint := "this address takes none"
			if len(c.route.query) > 0 {
				hint = "it takes " + strings.Join(c.route.query, ", ")
			}
			return invalid(hint, "there is no parameter %q", name)
		}
		if len(values) > 1 {
			return invalid("give it once", "the parameter %q stands twice", name)
		}
	}
	return nil
}

// given is a parameter as it is: blanks at the edge of a name belong to it, and
// without them it is the name of another.
func (c *call) given(name string) string { return c.query.Get(name) }

// typed is a parameter that names nothing: a number or a time.
func (c *call) typed(name string) string { return strings.TrimSpace(c.given(name)) }

// needed is a parameter that has to be there.
func (c *call) needed(name string) (string, error) {
	value := c.given(name)
	if value == "" {
		return "", invalid("", "the parameter %q is missing", name)
	}
	return value, nil
}

// id is the number in the path.
func (c *call) id() (int64, error) {
	text := c.params.ByName("id")
	if id, err := strconv.ParseInt(text, 10, 64); err == nil && id > 0 {
		return id, nil
	}
	return 0, problem{http.StatusNotFound, strconv.Quote(text) + " is not a number of one", ""}
}

// key is the event that the request is about.
func (c *call) key() (event.Key, error) {
	text, err := c.needed("key")
	if err != nil {
		return event.Key{}, err
	}
	return event.ParseKey(text)
}

// limit is how many rows are asked for.
func (c *call) limit() (int, error) {
	text := c.typed("limit")
	if text == "" {
		return defaultRows, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxRows {
		return 0, invalid("a number from 1 to "+strconv.Itoa(maxRows), "limit %q is none", text)
	}
	return n, nil
}

// cursor is where a list that goes by numbers goes on.
func (c *call) cursor() (int64, error) {
	text := c.given("cursor")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != text {
		return 0, errCursor(text)
	}
	return n, nil
}

// page is the part of a list that goes by numbers that is asked for.
func (c *call) page() (at event.Page, err error) {
	if at.Limit, err = c.limit(); err != nil {
		return at, err
	}
	at.Before, err = c.cursor()
	return at, err
}

func errCursor(text string) error {
	return invalid("take next of the page before, as it is", "%q is no cursor of this list", text)
}

// selector is what a list is narrowed by: the text of a query, and filters that
// stand by themselves.
func (c *call) selector() (event.Selector, error) {
	terms := []string{c.given("q")}
	for _, name := range event.Filters() {
		value := c.given(name)
		if name == "since" || name == "until" {
			value = c.typed(name)
		}
		if value != "" {
			terms = append(terms, event.Filter(name, value))
		}
	}
	return event.ParseQuery(strings.Join(terms, " "), c.now)
}

// read reads the body, which must be one JSON value with members that the route
// knows.
func (c *call) read(into any) error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return problem{http.StatusUnsupportedMediaType, "the body has to be JSON", "send Content-Type: application/json, as curl --json does"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxAsked))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return problem{http.StatusRequestEntityTooLarge, "the body is larger than 1 MiB", "name less at once, or say it as a query"}
	case err != nil:
		return problem{http.StatusBadRequest, "the body could not be read", "send it again"}
	}
	const hint = "GET " + Prefix + "/openapi.json says what it has to be"
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	var odd *json.UnmarshalTypeError
	switch err = decoder.Decode(into); {
	case errors.As(err, &odd) && odd.Field == "":
		return invalid(hint, "the body is not a JSON object")
	case errors.As(err, &odd):
		// What comes before the last dot is how our types are put together.
		return invalid(hint, "the member %q can not be a %s", odd.Field[strings.LastIndexByte(odd.Field, '.')+1:], odd.Value)
	case errors.Is(err, io.EOF):
		return invalid(hint, "the body can not be taken: it is empty")
	case err != nil:
		return invalid(hint, "the body can not be taken: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return invalid("", "something stands behind the JSON value of the body")
	}
	if name, what := oddMember(body); what != "" {
		return invalid(hint, "the member %q %s", name, what)
	}
	return nil
}

// oddMember finds a member of an object that stands there twice, of which a
// reader might take either, or whose name is one of ours in other letters,
// which the decoder would take for it. Two readers of one act are to read the
// same.
func oddMember(body []byte) (name, what string) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	type level struct {
		names map[string]bool // nil in a list
		value bool            // a value comes next, and not a name
	}
	var levels []level
	for {
		token, err := decoder.Token()
		if err != nil {
			return "", "" // the end: the body is JSON
		}
		if n := len(levels); n > 0 && levels[n-1].names != nil && !levels[n-1].value {
			if name, is := token.(string); is {
				switch top := &levels[n-1]; {
				case top.names[name]:
					return name, "stands there twice"
				case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "":
					return name, "is not known"
				default:
					top.names[name], top.value = true, true
					continue
				}
			}
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{names: map[string]bool{}})
			continue
		case json.Delim('['):
			levels = append(levels, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:len(levels)-1]
		}
		if n := len(levels); n > 0 {
			levels[n-1].value = false
		}
	}
}
