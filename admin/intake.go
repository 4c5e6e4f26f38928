package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/julienschmidt/httprouter"

	"creel/event"
	"creel/source"
)

// Intake is what only the running server knows about requests that are no
// events: the drawer of those that it rejected, and its secrets.
type Intake interface {
	// Rejects lists rejected requests, the newest first.
	Rejects(ctx context.Context, filter RejectFilter) ([]Reject, error)
	// Reject is one of them, with what may be shown of it; event.ErrNotFound.
	Reject(ctx context.Context, id int64) (RejectDetail, error)
	// Capture is one of them as a raw HTTP request, with its signature and
	// without the headers that carry a secret itself.
	Capture(ctx context.Context, id int64) ([]byte, error)
	// VerifyReject says why one of them fails; at replaces the time at which
	// it came, where it is not zero.
	VerifyReject(ctx context.Context, id int64, at time.Time) (source.Diagnosis, error)
	// VerifyRequest says the same of any request.
	VerifyRequest(ctx context.Context, ask VerifyRequest) (source.Diagnosis, error)
	// RetryRejects verifies them again and stores what verifies now.
	RetryRejects(ctx context.Context, ask RetryRejects) ([]RetriedReject, error)
}

// RejectFilter narrows the list of rejected requests. Empty fields take all.
type RejectFilter struct {
	Source string
	Cause  string
	Limit  int // 0 is all
}

// Reject is a request that failed its verification, as lists show it.
type Reject struct {
	ID       int64       `json:"id"` // counts from 1 at the start of the server
	At       time.Time   `json:"at"`
	Source   string      `json:"source"`
	Cause    string      `json:"cause"`
	Detail   string      `json:"detail"`
	Peer     string      `json:"peer"` // address of the sender
	Size     int         `json:"size"` // of the body, in bytes
	Kept     int         `json:"kept"` // of these
	Accepted []event.Key `json:"accepted"`
}

// RejectDetail is one with its head and body. Values that may be a secret, or
// are made with one, are left out.
type RejectDetail struct {
	Reject
	Method string `json:"method"`
	Query  string `json:"query"`
	Header string `json:"header"` // "Name: value" lines
	Body   []byte `json:"body_base64"`
}

// VerifyRequest asks why a request verifies or not.
type VerifyRequest struct {
	Source string              `json:"source"`
	At     time.Time           `json:"at,omitzero"` // now where it is zero
	Method string              `json:"method"`
	Query  string              `json:"query"`
	Header map[string][]string `json:"header"`
	Body   []byte              `json:"body"`
}

// RetryRejects names rejected requests to verify again: one, or all of a
// source.
type RetryRejects struct {
	ID     int64  `json:"id,omitempty"`
	Source string `json:"source,omitempty"`
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
}

// RetriedReject is what became of one.
type RetriedReject struct {
	Reject
	Outcome string      `json:"outcome"` // accepted, duplicate, rejected, …
	Stored  bool        `json:"stored"`  // its events are in the inbox
	Events  []event.Key `json:"events"`
	Action  int64       `json:"action,omitempty"` // in the audit trail
}

// routeIntake adds the API of what is no event (yet). A capture holds a
// signature, so it is for the control socket alone.
func routeIntake(router *httprouter.Router, ops Intake) {
	router.GET("/api/v1/rejects", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		query := r.URL.Query()
		limit, _ := strconv.Atoi(query.Get("limit")) // 0 is all
		list, err := ops.Rejects(r.Context(), RejectFilter{Source: query.Get("source"), Cause: query.Get("cause"), Limit: limit})
		reply(w, list, err)
	})
	router.GET("/api/v1/rejects/:id", func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		if id, ok := number(w, params); ok {
			detail, err := ops.Reject(r.Context(), id)
			reply(w, detail, err)
		}
	})
	router.GET("/api/v1/rejects/:id/capture", func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		id, ok := number(w, params)
		if !ok {
			return
		}
		capture, err := ops.Capture(r.Context(), id)
		reply(w, capture, err)
	})
	router.GET("/api/v1/rejects/:id/verify", func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		id, ok := number(w, params)
		if !ok {
			return
		}
		var at time.Time
		if text := r.URL.Query().Get("at"); text != "" {
			var err error
			if at, err = time.Parse(time.RFC3339Nano, text); err != nil {
				problem(w, http.StatusBadRequest, "at is not a time of RFC 3339")
				return
			}
		}
		diagnosis, err := ops.VerifyReject(r.Context(), id, at)
		reply(w, diagnosis, err)
	})
	router.POST("/api/v1/rejects", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		asked(w, r, ops.RetryRejects)
	})
	router.POST("/api/v1/verify", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		asked(w, r, ops.VerifyRequest)
	})
}

func number(w http.ResponseWriter, params httprouter.Params) (int64, bool) {
	id, err := strconv.ParseInt(params.ByName("id"), 10, 64)
	if err != nil {
		problem(w, http.StatusNotFound, fmt.Sprintf("%q is no number", params.ByName("id")))
	}
	return id, err == nil
}

// maxAsked bounds a question to the server, in bytes: a body of almost 30 MiB in
// base64, and its head. A larger one is for a database that no server has open.
const maxAsked = 40 << 20

// asked answers a request whose body is the question.
func asked[Q, A any](w http.ResponseWriter, r *http.Request, answer func(context.Context, Q) (A, error)) {
	var question Q
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAsked)).Decode(&question); err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	value, err := answer(r.Context(), question)
	reply(w, value, err)
}

// Rejects asks for the drawer of rejected requests.
func (c *Client) Rejects(ctx context.Context, filter RejectFilter) ([]Reject, error) {
	query := url.Values{"source": {filter.Source}, "cause": {filter.Cause}, "limit": {strconv.Itoa(filter.Limit)}}
	var list []Reject
	err := c.call(ctx, http.MethodGet, "/api/v1/rejects?"+query.Encode(), nil, &list)
	return list, err
}

// Reject asks for one rejected request.
func (c *Client) Reject(ctx context.Context, id int64) (RejectDetail, error) {
	var detail RejectDetail
	err := c.call(ctx, http.MethodGet, fmt.Sprintf("/api/v1/rejects/%d", id), nil, &detail)
	return detail, err
}

// Capture asks for one rejected request as a raw HTTP request.
func (c *Client) Capture(ctx context.Context, id int64) ([]byte, error) {
	var capture []byte
	err := c.call(ctx, http.MethodGet, fmt.Sprintf("/api/v1/rejects/%d/capture", id), nil, &capture)
	return capture, err
}

// VerifyReject asks why a rejected request fails.
func (c *Client) VerifyReject(ctx context.Context, id int64, at time.Time) (source.Diagnosis, error) {
	path := fmt.Sprintf("/api/v1/rejects/%d/verify", id)
	if !at.IsZero() {
		path += "?at=" + url.QueryEscape(at.UTC().Format(time.RFC3339Nano))
	}
	var diagnosis source.Diagnosis
	err := c.call(ctx, http.MethodGet, path, nil, &diagnosis)
	return diagnosis, err
}

// VerifyRequest asks why a request verifies or not.
func (c *Client) VerifyRequest(ctx context.Context, ask VerifyRequest) (source.Diagnosis, error) {
	var diagnosis source.Diagnosis
	err := c.call(ctx, http.MethodPost, "/api/v1/verify", ask, &diagnosis)
	return diagnosis, err
}

// RetryRejects asks to verify rejected requests again.
func (c *Client) RetryRejects(ctx context.Context, ask RetryRejects) ([]RetriedReject, error) {
	var list []RetriedReject
	err := c.call(ctx, http.MethodPost, "/api/v1/rejects", ask, &list)
	return list, err
}
