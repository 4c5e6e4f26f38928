package admin

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/julienschmidt/httprouter"

	"creel/event"
	"creel/source"
)

// Bring is how events come in that their sender does not bring.
type Bring interface {
	// Import takes events from a file, one piece of it after another.
	Import(ctx context.Context, ask AskImport) ([]ImportedLine, error)
	// Reconcile compares a source with the list that its sender keeps.
	Reconcile(ctx context.Context, ask AskReconcile) (Reconciled, error)
	// Reconciling is how far the last comparison of a source is, or was when it
	// ended; event.ErrNotFound where there was none.
	Reconciling(ctx context.Context, source string) (Reconciling, error)
}

// AskImport is a piece of a file of events.
type AskImport struct {
	Source string       `json:"source"`
	Actor  string       `json:"actor"`
	Reason string       `json:"reason"`
	File   string       `json:"file"`
	First  bool         `json:"first"` // the piece that the audit trail names
	DryRun bool         `json:"dry_run"`
	Lines  []ImportLine `json:"lines"`
}

// ImportLine is one request as a webhook would have carried it.
type ImportLine struct {
	N      int         `json:"n"` // the line of the file
	Body   []byte      `json:"body"`
	Header http.Header `json:"header,omitempty"`
	Query  string      `json:"query,omitempty"`
	ID     string      `json:"id,omitempty"` // of its event, where the body has none
}

// Size is the most that a line takes in a question to the server, in bytes: a
// character of its head may be written as six.
func (l *ImportLine) Size() int {
	size := len(l.Query) + len(l.ID)
	for name, values := range l.Header {
		size += len(name) + 1
		for _, value := range values {
			size += len(value) + 1
		}
	}
	return base64.StdEncoding.EncodedLen(len(l.Body)) + 6*size + 64
}

// maxLine is the largest line that a question to the server can carry, beside
// what else stands in it.
const maxLine = maxAsked - 1<<20

// ImportedLine is what became of one.
type ImportedLine struct {
	N       int             `json:"n"`
	Events  []ImportedEvent `json:"events"`
	Skipped int             `json:"skipped,omitempty"` // of the other mode
	Error   string          `json:"error,omitempty"`   // why nothing of it was taken
}

// ImportedEvent is one event of a line.
type ImportedEvent struct {
	Key    event.Key    `json:"key"`
	Result event.Result `json:"result"`
	// Content tells, in a dry run, what one line says under a key from what
	// another one does, in hex.
	Content string `json:"content,omitempty"`
}

// AskReconcile says what to compare. With IDs nothing is listed: those are
// looked for, and nothing is brought in.
type AskReconcile struct {
	Source    string    `json:"source"`
	Actor     string    `json:"actor"`
	Reason    string    `json:"reason"`
	Since     time.Time `json:"since,omitzero"`
	Import    bool      `json:"import"`
	Redeliver bool      `json:"redeliver"`
	IDs       []string  `json:"ids,omitempty"`
}

// Reconciled is what a comparison came to.
type Reconciled struct {
	Source     string         `json:"source"`
	Span       source.Span    `json:"span"`
	Lost       []source.Span  `json:"unrecoverable"` // of which the sender may have had more than it lists
	Pages      int            `json:"pages"`
	Listed     int            `json:"listed"`
	Missing    int            `json:"missing"`
	Recovered  int            `json:"recovered"`
	Asked      int            `json:"redelivered"` // the sender was asked to deliver them again
	Failed     int            `json:"failed"`      // missing ones that could not be brought in, or asked for
	Unreadable int            `json:"unreadable"`  // items of the list
	Why        string         `json:"why_unreadable,omitempty"`
	List       []MissingEvent `json:"missing_events"`
	More       int            `json:"missing_not_listed,omitempty"` // beyond those in missing_events
}

// Reconciling is how far a comparison is.
type Reconciling struct {
	Began  time.Time      `json:"began_at"`
	Ended  bool           `json:"ended"`
	Read   source.Reading `json:"read"`
	Import bool           `json:"import"`
	Again  bool           `json:"redeliver"`

	Missing   int `json:"missing"`
	Recovered int `json:"recovered"`
	Asked     int `json:"redelivered"`
}

// Left is what became of what a comparison had found when it broke off.
func (r Reconciling) Left() string {
	found := fmt.Sprintf("read so far: pages %d, events %d, missing %d", r.Read.Pages, r.Read.Listed, r.Missing)
	switch {
	case r.Recovered > 0:
		return fmt.Sprintf("%s, recovered %d. These stay; the same again brings in the rest", found, r.Recovered)
	case r.Asked > 0:
		return fmt.Sprintf("%s, asked for again %d. The same again asks for the rest", found, r.Asked)
	}
	return found + ". None of it was used: the gap is what it was"
}

// MissingEvent is an event that the inbox did not have.
type MissingEvent struct {
	Key     event.Key `json:"key"`
	ID      string    `json:"id"`
	Type    string    `json:"type,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Outcome string    `json:"outcome"` // missing, recovered, duplicate, asked, failed
	Error   string    `json:"error,omitempty"`
}

func routeBring(router *httprouter.Router, ops Bring) {
	router.POST("/api/v1/import", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		asked(w, r, ops.Import)
	})
	router.POST("/api/v1/reconcile", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		asked(w, r, ops.Reconcile)
	})
	router.GET("/api/v1/reconcile/:source", func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		far, err := ops.Reconciling(r.Context(), params.ByName("source"))
		reply(w, far, err)
	})
}

// Import hands a piece of a file to the server. A line that no question can
// carry stays here and is said to be unreadable: those around it come in.
func (c *Client) Import(ctx context.Context, ask AskImport) ([]ImportedLine, error) {
	var large []ImportedLine
	var fit []ImportLine
	for i := range ask.Lines {
		if line := &ask.Lines[i]; line.Size() > maxLine {
			large = append(large, ImportedLine{N: line.N, Events: []ImportedEvent{},
				Error: fmt.Sprintf("it is too large for a running server (over %d MB): import it with the server stopped", maxLine/4*3/1_000_000)})
		} else {
			fit = append(fit, *line)
		}
	}
	ask.Lines = fit
	var done []ImportedLine
	if len(fit) > 0 || ask.First {
		if err := c.call(ctx, http.MethodPost, "/api/v1/import", ask, &done); err != nil {
			return nil, err
		}
	}
	done = append(done, large...)
	slices.SortStableFunc(done, func(a, b ImportedLine) int { return cmp.Compare(a.N, b.N) })
	return done, nil
}

// Reconcile asks the server to compare a source with its sender's list.
func (c *Client) Reconcile(ctx context.Context, ask AskReconcile) (done Reconciled, err error) {
	err = c.call(ctx, http.MethodPost, "/api/v1/reconcile", ask, &done)
	return done, err
}

// Reconciling asks the server how far a comparison is.
func (c *Client) Reconciling(ctx context.Context, source string) (far Reconciling, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/reconcile/"+url.PathEscape(source), nil, &far)
	return far, err
}
