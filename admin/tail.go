package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/julienschmidt/httprouter"

	"creel/event"
)

// Happening is one thing that happened, as creel tail prints it.
type Happening struct {
	At   time.Time     `json:"at"`
	What HappeningKind `json:"what"`

	// Of an event, and of the event of an attempt.
	Source   string     `json:"source,omitempty"`
	Event    *event.Key `json:"event,omitempty"`
	Type     string     `json:"type,omitempty"`
	State    string     `json:"state,omitempty"` // of the event, or of the delivery of an attempt
	Attempts int        `json:"attempts,omitempty"`
	NextAt   time.Time  `json:"next_attempt_at,omitzero"`
	Error    string     `json:"error,omitempty"`

	// Of an attempt.
	Delivery    int64         `json:"delivery,omitempty"`
	Destination string        `json:"destination,omitempty"`
	Target      string        `json:"target,omitempty"`
	Attempt     int           `json:"attempt,omitempty"` // of its run
	Status      int           `json:"status,omitempty"`
	Outcome     event.Outcome `json:"outcome,omitempty"`
	Duration    int64         `json:"duration_ms,omitempty"`

	// Of a rejected request.
	Request int64  `json:"request,omitempty"` // its number in the drawer
	Cause   string `json:"cause,omitempty"`
	Peer    string `json:"peer,omitempty"`

	// Of an operator's action; Count also of what was left out.
	Action string `json:"action,omitempty"`
	Actor  string `json:"actor,omitempty"`
	Count  int    `json:"count,omitempty"`
}

// HappeningKind says what happened.
type HappeningKind string

// What happens.
const (
	EventReceived  HappeningKind = "received"
	EventDuplicate HappeningKind = "duplicate"
	EventConflict  HappeningKind = "conflict"
	EventDecided   HappeningKind = "event"    // its rules ran: see its state
	DeliveryTried  HappeningKind = "attempt"  // see its outcome
	RequestRefused HappeningKind = "rejected" // it failed its verification, or was refused before it
	ActionDone     HappeningKind = "action"   // of an operator
	LeftOut        HappeningKind = "left_out" // more happened than could be told
)

// TailFilter narrows what is followed. Empty fields take all.
type TailFilter struct {
	Source string
	Type   string // a glob
	State  string // of events or of deliveries
}

// Watch tells of what happens as it happens.
type Watch interface {
	// Follow gives emit what happens, until ctx or the server ends, or emit
	// fails. It calls emit once with nothing when it has begun to listen. It
	// never holds a read on the database while it waits.
	Follow(ctx context.Context, filter TailFilter, emit func([]Happening) error) error
}

// tailPatience is how long a reader may take for what it is told. One that
// stopped reading must not hold the server's stop.
const tailPatience = 3 * time.Second

func routeTail(router *httprouter.Router, ops Watch) {
	router.GET("/api/v1/tail", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		query := r.URL.Query()
		filter := TailFilter{Source: query.Get("source"), Type: query.Get("type"), State: query.Get("state")}
		control := http.NewResponseController(w)
		begun := false
		err := ops.Follow(r.Context(), filter, func(list []Happening) error {
			if !begun {
				begun = true
				w.Header().Set("Content-Type", "application/x-ndjson")
				w.WriteHeader(http.StatusOK)
			}
			if err := control.SetWriteDeadline(time.Now().Add(tailPatience)); err != nil {
				return fmt.Errorf("bound the write: %w", err)
			}
			lines := json.NewEncoder(w)
			for i := range list {
				if err := lines.Encode(&list[i]); err != nil {
					return fmt.Errorf("write what happened: %w", err)
				}
			}
			return control.Flush()
		})
		if err != nil && !begun {
			reply(w, nil, err)
		}
	})
}

// ErrServerStopped says that the server ended while it was followed.
var ErrServerStopped = errors.New("the server stopped")

// Follow tells what happens until ctx ends, in which case it returns nil, or
// the server stops. begun is called once it listens.
func (c *Client) Follow(ctx context.Context, filter TailFilter, begun func(), tell func(*Happening) error) error {
	query := url.Values{"source": {filter.Source}, "type": {filter.Type}, "state": {filter.State}}
	ctx, done := c.attend(ctx)
	defer done()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://creel/api/v1/tail?"+query.Encode(), nil)
	if err != nil {
		return fmt.Errorf("build the request: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return lost(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refusal(response)
	}
	begun()
	lines := json.NewDecoder(bufio.NewReader(response.Body))
	for {
		var one Happening
		if err := lines.Decode(&one); err != nil {
			switch {
			case errors.Is(context.Cause(ctx), ErrHung):
				return ErrHung
			case ctx.Err() != nil:
				return nil
			}
			return ErrServerStopped
		}
		if err := tell(&one); err != nil {
			return err
		}
	}
}
