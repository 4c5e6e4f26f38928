package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"creel/admin"
	"creel/admin/page"
	"creel/event"
)

const (
	// jsonLines is the type of an answer that has one JSON object on each line.
	jsonLines = "application/jsonl"
	// exportsAtOnce bounds how many lists are written whole at once.
	exportsAtOnce = 2
	// exportTime bounds how long whoever asked may take to read one page of it.
	exportTime = time.Minute
)

// export is a list written to its end, a row on each line: all that a search
// finds, page by page as it is then. No more than a page is in memory, and no
// state of the database is held from one to the next.
type export[T any] struct {
	name string // of the file
	read func(ctx context.Context, cursor string) (list[T], error)
}

// exporter is an export of any rows.
type exporter interface {
	file() string
	page(ctx context.Context, cursor string) (rows []any, next string, err error)
}

func (e export[T]) file() string { return e.name }

func (e export[T]) page(ctx context.Context, cursor string) ([]any, string, error) {
	found, err := e.read(ctx, cursor)
	rows := make([]any, len(found.Items))
	for i := range found.Items {
		rows[i] = found.Items[i]
	}
	return rows, found.Next, err
}

var (
	errExports = problem{http.StatusServiceUnavailable, "too many lists are written whole at once", "ask again when one of them is over"}
	// errStands says that a page leads to itself, which none may.
	errStands = problem{http.StatusInternalServerError, "a list does not go on", ""}
)

// write answers with a list to its end. Each page has as long as any other
// answer. What goes wrong behind the first page breaks the connection off, so
// that nobody takes a part for the whole.
func (a *API) write(w http.ResponseWriter, r *http.Request, list exporter) {
	select {
	case a.exports <- struct{}{}:
		defer func() { <-a.exports }()
	default:
		a.fail(w, r, errExports)
		return
	}
	rows, next, err := pageOf(r.Context(), list, "")
	if err != nil {
		a.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", jsonLines)
	w.Header().Set("Content-Disposition", "attachment; filename="+list.file())
	out, to := http.NewResponseController(w), json.NewEncoder(w)
	to.SetEscapeHTML(false)
	for {
		_ = out.SetWriteDeadline(time.Now().Add(exportTime))
		for _, row := range rows {
			if err := to.Encode(row); err != nil {
				return // whoever asked is gone
			}
		}
		_ = out.Flush()
		if next == "" {
			return
		}
		last := next
		if rows, next, err = pageOf(r.Context(), list, last); err == nil && next == last {
			err = errStands
		}
		if err != nil {
			if r.Context().Err() == nil {
				a.opt.Log.Error().Err(err).Str(event.FieldPath, r.URL.Path).Msg("a list could not be written to its end")
			}
			panic(http.ErrAbortHandler)
		}
	}
}

func pageOf(ctx context.Context, list exporter, cursor string) ([]any, string, error) {
	ctx, cancel := context.WithTimeout(ctx, reading)
	defer cancel()
	return list.page(ctx, cursor)
}

// allEvents writes every event that a search finds.
func allEvents(c *call) (any, error) {
	selector, err := c.selector()
	return export[admin.EventLine]{"events.jsonl", func(ctx context.Context, cursor string) (list[admin.EventLine], error) {
		return c.eventsFrom(ctx, page.Ask{Selector: selector, Cursor: cursor, Limit: maxRows, NoHead: true})
	}}, err
}

// allDeadLetters writes every dead letter that a search finds.
func allDeadLetters(c *call) (any, error) {
	selector, err := c.selector()
	if err == nil {
		err = onlyDead(&selector)
	}
	return export[letterLine]{"dead-letters.jsonl", func(ctx context.Context, cursor string) (list[letterLine], error) {
		return c.lettersFrom(ctx, page.Ask{Selector: selector, Cursor: cursor, Limit: maxRows, NoHead: true})
	}}, err
}
