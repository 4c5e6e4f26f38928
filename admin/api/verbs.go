package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"creel/admin"
	"creel/event"
)

// selection says which events an act means.
type selection struct {
	Query string      `json:"query,omitempty"` // as the lists take it: "source:stripe state:dead since:24h"
	Keys  []event.Key `json:"keys,omitempty"`  // of events
	All   bool        `json:"all,omitempty"`   // every event, where nothing else is said
}

func (s selection) selector(now time.Time) (event.Selector, error) {
	selector, err := event.ParseQuery(s.Query, now)
	if err != nil {
		return selector, err
	}
	if len(s.Keys) > 0 && s.Query != "" {
		return selector, invalid("give one of them", "a selection is a query or keys, and not both")
	}
	for _, key := range s.Keys {
		if key.Source == "" || key.ID == "" {
			return selector, event.ErrBadKey
		}
	}
	if len(s.Keys) > 0 {
		selector.Keys = s.Keys
	}
	if selector.All = s.All; selector.Everything() && !s.All {
		return selector, invalid(`give "query" or "keys"; "all": true means every event`, "nothing says which events are meant")
	}
	return selector, nil
}

// askReplay asks for a replay.
type askReplay struct {
	selection
	Run    int     `json:"run,omitempty"`    // in which the one event of keys was seen: in another one it is refused
	Resend bool    `json:"resend,omitempty"` // what was sent is sent again too, under the same identity
	Rate   float64 `json:"rate,omitempty"`   // events a second at most
	Reason string  `json:"reason,omitempty"`
}

// askDiscard asks for a discard.
type askDiscard struct {
	selection
	Destination string `json:"destination,omitempty"` // what waits for one that the configuration has no more
	Reason      string `json:"reason,omitempty"`
}

// askResolve decides about a delivery in doubt.
type askResolve struct {
	Delivery int64  `json:"delivery"`
	As       string `json:"as"` // sent, again or dead
	Reason   string `json:"reason,omitempty"`
}

// askDestination names a destination to pause or resume.
type askDestination struct {
	Destination string `json:"destination"`
	Reason      string `json:"reason,omitempty"`
}

// askLane names a lane, or an event that holds one up.
type askLane struct {
	Lane   string    `json:"lane,omitempty"`
	Key    event.Key `json:"key,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// askAck names an incident that somebody sees to, or all of them.
type askAck struct {
	Incident int64  `json:"incident,omitempty"`
	All      bool   `json:"all,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// askRejects names rejected requests to verify again: one, or all of a source.
type askRejects struct {
	Request int64  `json:"request,omitempty"`
	Source  string `json:"source,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// askReason says why something is done.
type askReason struct {
	Reason string `json:"reason"`
}

// Idempotency keys.
const (
	onceHeader = "Idempotency-Key"
	maxOnce    = 200
	onceDomain = "creel request 1\n"
)

// once is the key of a request together with what it asks for, by hashes: the
// same token with the same key is the same request.
func (c *call) once(ask any, needed bool) (event.Once, error) {
	key := c.r.Header.Get(onceHeader)
	switch {
	case key == "" && needed:
		return event.Once{}, problem{http.StatusBadRequest, "the header " + onceHeader + " is missing",
			"send a text of your own that is new for each " + strings.TrimPrefix(c.route.path, "/") + " and the same when you repeat one; or make a plan and carry it out"}
	case key == "":
		return event.Once{}, nil
	case len(key) > maxOnce:
		return event.Once{}, problem{http.StatusBadRequest, fmt.Sprintf("the %s has more than %d bytes", onceHeader, maxOnce), "take a shorter one"}
	}
	what, err := json.Marshal(ask)
	if err != nil {
		return event.Once{}, fmt.Errorf("write a request: %w", err)
	}
	by := sha256.Sum256([]byte(onceDomain + c.who.name + "\n" + key))
	sum := sha256.Sum256([]byte(onceDomain + c.route.path + "\n" + string(what)))
	return event.Once{By: [16]byte(by[:16]), What: [16]byte(sum[:16])}, nil
}

// patience is how long an act is waited for. A longer one goes on by itself.
const patience = 5 * time.Second

// act does an action of this caller. ask is what he asked for.
func (c *call) act(action event.Action, ask any) (any, error) {
	bulk := action.Kind == event.ActionReplay && c.route.path == "/replay" || action.Kind == event.ActionDiscard
	var err error
	if action.Once, err = c.once(ask, bulk); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), patience)
	defer cancel()
	return goesOn(c.api.opt.Operator.Act(ctx, c.signed(action)))
}

// signed is an action with who does it, and when.
func (c *call) signed(action event.Action) event.Action {
	action.Actor, action.At = c.who.name, c.now
	return action
}

// goesOn answers with an action that is under way as far as it is, with the
// times that its row has: asked for again the answer is the same.
func goesOn(done event.Action, err error) (any, error) {
	done.At, done.Finished = done.At.UTC().Truncate(time.Millisecond), done.Finished.UTC().Truncate(time.Millisecond)
	if errors.Is(err, context.DeadlineExceeded) && done.ID > 0 {
		err = nil
	}
	return done, err
}

func replay(c *call) (any, error) {
	var ask askReplay
	if err := c.read(&ask); err != nil {
		return nil, err
	}
	selector, err := ask.selector(c.now)
	if err != nil {
		return nil, err
	}
	if selector.Run = ask.Run; ask.Run < 0 || ask.Run != 0 && len(selector.Keys) != 1 {
		return nil, invalid("give it with one key: a number above 0", "a run is of one event")
	}
	return c.act(event.Action{Kind: event.ActionReplay, Selector: selector, Resend: ask.Resend, Rate: ask.Rate, Reason: ask.Reason}, ask)
}

func discard(c *call) (any, error) {
	var ask askDiscard
	if err := c.read(&ask); err != nil {
		return nil, err
	}
	selector := event.Selector{}
	if ask.Query != "" || len(ask.Keys) > 0 || ask.All || ask.Destination == "" {
		var err error
		if selector, err = ask.selector(c.now); err != nil {
			return nil, err
		}
	}
	return c.act(event.Action{Kind: event.ActionDiscard, Selector: selector, Target: ask.Destination, Reason: ask.Reason}, ask)
}

func resolve(c *call) (any, error) {
	var ask askResolve
	if err := c.read(&ask); err != nil {
		return nil, err
	}
	kind := map[string]event.ActionKind{"sent": event.ActionWasSent, "again": event.ActionSendAgain, "dead": event.ActionGiveUp}[ask.As]
	if kind == "" || ask.Delivery <= 0 {
		return nil, invalid(`{"delivery": 17, "as": "sent"}; as is sent, again or dead`, "this decides about no delivery")
	}
	return c.act(event.Action{Kind: kind, Target: strconv.FormatInt(ask.Delivery, 10), Reason: ask.Reason}, ask)
}

func pause(c *call) (any, error) { return switchDestination(c, event.ActionPause) }

func resume(c *call) (any, error) { return switchDestination(c, event.ActionResume) }

func switchDestination(c *call, kind event.ActionKind) (any, error) {
	var ask askDestination
	if err := c.read(&ask); err != nil {
		return nil, err
	}
	if ask.Destination == "" {
		return nil, invalid(`{"destination": "app"}`, "say which destination")
	}
	return c.act(event.Action{Kind: kind, Target: ask.Destination, Reason: ask.Reason}, ask)
}

func acknowledge(c *call) (any, error) {
	var ask askAck
	if err := c.read(&ask); err != nil {
		return nil, err
	}
	if ask.All == (ask.Incident != 0) || ask.Incident < 0 {
		return nil, invalid(`{"incident": 7} or {"all": true}`, "this names no incident")
	}
	target := event.AllIncidents
	if !ask.All {
		target = strconv.FormatInt(ask.Incident, 10)
	}
	return c.act(event.Action{Kind: event.ActionAck, Target: target, Reason: ask.Reason}, ask)
}

func retryRejects(c *call) (any, error) {
	var ask askRejects
	if err := c.read(&ask); err != nil {
		return nil, err
	}
	if (ask.Request == 0) == (ask.Source == "") {
		return nil, invalid(`{"request": 7} or {"source": "stripe"}`, "this names no rejected request")
	}
	done, err := c.api.opt.Operator.RetryRejects(c.ctx, admin.RetryRejects{ID: ask.Request, Source: ask.Source, Actor: c.who.name, Reason: ask.Reason})
	return whole(done, err, same)
}
