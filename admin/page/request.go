package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"creel/event"
)

// rows is how many rows a page of a list has.
const rows = 50

// reading bounds how long a page may be read from the store.
const reading = 10 * time.Second

// request is one request of somebody who has logged in.
type request struct {
	page    *Page
	w       http.ResponseWriter
	r       *http.Request
	ctx     context.Context
	params  httprouter.Params
	session *session
	now     time.Time
}

func (p *Page) newRequest(w http.ResponseWriter, r *http.Request, params httprouter.Params, s *session) (*request, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(r.Context(), reading)
	return &request{page: p, w: w, r: r, ctx: ctx, params: params, session: s, now: p.opt.Clock().UTC()}, cancel
}

func (q *request) data() Data         { return q.page.opt.Data }
func (q *request) operator() Operator { return q.page.opt.Operator }

// given is a value of the query as it is: blanks at the edge of a name belong to
// it, and without them it is the name of another.
func (q *request) given(name string) string { return q.r.URL.Query().Get(name) }

// form is a value of a form that was sent, as it is.
func (q *request) form(name string) string { return q.r.PostForm.Get(name) }

// typed is a value of a form that a person wrote and that names nothing: blanks
// at its edge are a slip of the hand.
func (q *request) typed(name string) string { return strings.TrimSpace(q.form(name)) }

// number is a number of the path or the query, 0 where there is none.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// cursor is where a page of a list begins that goes by numbers, 0 at the
// newest. What no list wrote is not there.
func (q *request) cursor() (int64, error) {
	text := q.given("after")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%w: no page begins at %q", event.ErrNotFound, text)
	}
	return n, nil
}

// cut takes the row that only told that there is more off a list.
func cut[T any](list []T) (shown []T, more bool) {
	if len(list) > rows {
		return list[:rows], true
	}
	return list, false
}

// pager is the way on from a page of a list, by real links.
type pager struct {
	Next  string // "" on the last page
	First string // "" on the first page
}

// pages makes links to the next page, with the query as it is but for the
// cursor, and back to the first.
func (q *request) pages(cursor, next string) pager {
	values := q.r.URL.Query()
	here := func(set string) string {
		values.Del(cursor)
		if set != "" {
			values.Set(cursor, set)
		}
		if len(values) == 0 {
			return q.page.prefix + q.r.URL.Path
		}
		return q.page.prefix + q.r.URL.Path + "?" + values.Encode()
	}
	var p pager
	if q.given(cursor) != "" {
		p.First = here("")
	}
	if next != "" {
		p.Next = here(next)
	}
	return p
}

// pagesBy is pages for a list that goes by numbers.
func (q *request) pagesBy(more bool, last int64) pager {
	if !more {
		return q.pages("after", "")
	}
	return q.pages("after", strconv.FormatInt(last, 10))
}

// fail shows what went wrong and what can be done.
func (q *request) fail(status int, text string) {
	q.render(status, "message", layout{Title: http.StatusText(status), Content: text})
}

// failed shows an error of the store or of an operation.
func (q *request) failed(err error) {
	status, text := explain(err)
	if status == http.StatusInternalServerError {
		q.page.opt.Log.Error().Err(err).Str(event.FieldPath, q.r.URL.Path).Msg("a page could not be read")
	}
	q.fail(status, text)
}

// back sends the browser on after something was done, so that loading again
// does not do it again. What there is to say stands at the top of that page,
// once.
func (q *request) back(path, notice string) {
	path = within(path)
	if notice != "" {
		seen, _, _ := strings.Cut(path, "#") // a browser keeps the rest to itself
		q.page.sessions.say(q.page.cookie.read(q.r), seen, notice)
	}
	http.Redirect(q.w, q.r, q.page.prefix+path, http.StatusSeeOther)
}

// act does an action of this operator. One that is larger than a request may
// last goes on by itself; that is no error.
func (q *request) act(action event.Action) (event.Action, error) {
	return goesOn(q.operator().Act(q.patient(), q.signed(action)))
}

// signed is an action with who does it, and when.
func (q *request) signed(action event.Action) event.Action {
	action.Actor, action.At = "page:"+q.session.name, q.now
	return action
}

// patience is how long a form waits for what it started.
const patience = 3 * time.Second

func (q *request) patient() context.Context {
	ctx, cancel := context.WithTimeout(q.r.Context(), patience)
	context.AfterFunc(q.r.Context(), cancel)
	return ctx
}

func goesOn(done event.Action, err error) (event.Action, error) {
	if errors.Is(err, context.DeadlineExceeded) && done.ID > 0 {
		return done, nil
	}
	return done, err
}
