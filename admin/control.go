package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"creel/event"
)

// maxRequest bounds a request on the control socket, in bytes; a selection by
// key may name many.
const maxRequest = 8 << 20

// Operations are the acts of an operator and what only the running server
// knows.
type Operations interface {
	// Act replays, discards, pauses or resumes, as action.Kind says, and
	// returns the action as it is recorded.
	Act(ctx context.Context, action event.Action) (event.Action, error)
	// Status is what the server knows about itself, ready to be written as JSON.
	Status(ctx context.Context) (any, error)
	// Reload applies the configuration file again, whole or not at all.
	Reload(ctx context.Context) error
	// Checks are the conditions of readiness.
	Checks() []Check
}

// Control is the API of the control socket.
func Control(ops Operations) http.Handler {
	router := httprouter.New()
	router.RedirectTrailingSlash, router.RedirectFixedPath, router.HandleOPTIONS = false, false, false
	router.HandlerFunc(http.MethodGet, "/healthz", Healthz)
	router.HandlerFunc(http.MethodGet, "/readyz", Readyz(ops.Checks))
	router.GET("/api/v1/status", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		status, err := ops.Status(r.Context())
		reply(w, status, err)
	})
	router.POST("/api/v1/actions", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		var action event.Action
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&action); err != nil {
			problem(w, http.StatusBadRequest, err.Error())
			return
		}
		done, err := ops.Act(r.Context(), action)
		reply(w, done, err)
	})
	router.POST("/api/v1/reload", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		err := ops.Reload(r.Context())
		reply(w, map[string]string{"status": "reloaded"}, err)
	})
	return router
}

// Operator is the listener that an operator's tools reach over the network:
// for now its health answers alone.
func Operator(ops Operations) http.Handler {
	router := httprouter.New()
	router.RedirectTrailingSlash, router.RedirectFixedPath, router.HandleOPTIONS = false, false, false
	router.HandlerFunc(http.MethodGet, "/healthz", Healthz)
	router.HandlerFunc(http.MethodGet, "/readyz", Readyz(ops.Checks))
	return router
}

func reply(w http.ResponseWriter, value any, err error) {
	switch {
	case errors.Is(err, event.ErrNotFound):
		problem(w, http.StatusNotFound, err.Error())
	case errors.Is(err, ErrRefused):
		problem(w, http.StatusUnprocessableEntity, err.Error())
	case errors.Is(err, event.ErrUnavailable), errors.Is(err, event.ErrBusy):
		w.Header().Set("Retry-After", "1")
		problem(w, http.StatusServiceUnavailable, err.Error())
	case err != nil:
		problem(w, http.StatusInternalServerError, err.Error())
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
}

// ErrRefused says that a request is understood and will not be done as it is:
// a configuration with problems, an action of an unknown kind.
var ErrRefused = errors.New("refused")

// Problem is the body of an answer that is not a success.
type Problem struct {
	Error string `json:"error"`
}

func problem(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Problem{Error: text})
}
