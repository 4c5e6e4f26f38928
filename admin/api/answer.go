package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"creel/admin"
	"creel/event"
)

// problem is an answer that is no success: what is wrong, and what to do.
type problem struct {
	status int
	text   string
	hint   string
}

// problemLine is how it is written.
type problemLine struct {
	Error string `json:"error"`          // what is wrong
	Hint  string `json:"hint,omitempty"` // what to do
}

// Error implements error.
func (p problem) Error() string { return p.text }

// invalid says that a request is understood and can not be done as it is.
func invalid(hint, format string, args ...any) error {
	return problem{http.StatusUnprocessableEntity, fmt.Sprintf(format, args...), hint}
}

// plain is an answer that is no JSON value of ours.
type plain struct {
	kind string // its type
	file bool   // it is to be kept, and not to be shown
	line any    // of what type each line of it is, where it is JSON by lines
	data []byte
}

// reply writes an answer whole. An action that goes on is answered with 202.
func reply(w http.ResponseWriter, value any) {
	status := http.StatusOK
	switch v := value.(type) {
	case problem:
		status, value = v.status, problemLine{v.text, v.hint}
	case plain:
		w.Header().Set("Content-Type", v.kind)
		if v.file {
			w.Header().Set("Content-Disposition", "attachment")
		}
		_, _ = w.Write(v.data)
		return
	case event.Action:
		if v.Finished.IsZero() {
			status = http.StatusAccepted
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer could not be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

// fail answers with why something was not done. What is our own fault is told
// to the log alone.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := explain(err)
	switch p.status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusInternalServerError:
		a.opt.Log.Error().Err(err).Str(event.FieldPath, r.URL.Path).Msg("the API could not answer")
	}
	reply(w, p)
}

func explain(err error) problem {
	var p problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, event.ErrBadQuery), errors.Is(err, event.ErrBadKey):
		return problem{http.StatusUnprocessableEntity, err.Error(), ""}
	case errors.Is(err, event.ErrNotFound):
		return problem{http.StatusNotFound, err.Error(), ""}
	case errors.Is(err, admin.ErrRefused):
		return problem{http.StatusUnprocessableEntity, err.Error(), ""}
	case errors.Is(err, event.ErrOtherRequest):
		return problem{http.StatusUnprocessableEntity, err.Error(), "the Idempotency-Key was used for something else: take another one"}
	case errors.Is(err, event.ErrUnavailable), errors.Is(err, event.ErrBusy):
		return problem{http.StatusServiceUnavailable, "the store can not answer now", "ask again in a moment; the log says why"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return problem{http.StatusServiceUnavailable, "the answer took too long", "ask for less: a narrower selection, a smaller limit"}
	}
	return problem{http.StatusInternalServerError, "that did not work", "the log says why"}
}
