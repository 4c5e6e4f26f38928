package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

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
	// AwaitAction waits for the end of an action that goes on, or of ctx, and
	// returns it as it stands then.
	AwaitAction(ctx context.Context, action int64) (event.Action, error)
	// Status is what the server knows about itself, ready to be written as JSON.
	Status(ctx context.Context) (any, error)
	// Reload applies the configuration file again, whole or not at all, and
	// returns what is odd about it.
	Reload(ctx context.Context) (warnings []string, err error)
	// Checks are the conditions of readiness.
	Checks() []Check
	// Metrics adds what is counted to a scrape.
	Metrics(ctx context.Context, to *Exposition)

	Intake
	Bring
	Access
	Watch
	Figures
	Pairing
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
		replyAction(w, r, func(ctx context.Context) (event.Action, error) { return ops.Act(ctx, action) })
	})
	router.POST("/api/v1/actions/:id/await", func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		id, err := strconv.ParseInt(params.ByName("id"), 10, 64)
		if err != nil {
			problem(w, http.StatusNotFound, event.ErrNotFound.Error())
			return
		}
		replyAction(w, r, func(ctx context.Context) (event.Action, error) { return ops.AwaitAction(ctx, id) })
	})
	router.POST("/api/v1/reload", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		warnings, err := ops.Reload(r.Context())
		reply(w, reloaded{"reloaded", warnings}, err)
	})
	routeIntake(router, ops)
	routeBring(router, ops)
	routeAccess(router, ops)
	routeTail(router, ops)
	routeFigures(router, ops)
	routePairing(router, ops)
	return router
}

// Operator is the listener that an operator's tools reach over the network: its
// health answers, the metrics, the bodies for apps that have their address, and
// the page for all else.
func Operator(ops Operations, bodies, page http.Handler) http.Handler {
	router := httprouter.New()
	router.RedirectTrailingSlash, router.RedirectFixedPath, router.HandleOPTIONS = false, false, false
	router.HandlerFunc(http.MethodGet, "/healthz", Healthz)
	router.HandlerFunc(http.MethodGet, "/readyz", Readyz(ops.Checks))
	router.HandlerFunc(http.MethodGet, "/metrics", Metrics(ops.Metrics))
	router.Handler(http.MethodGet, BodyPath+":token", bodies)
	router.Handler(http.MethodHead, BodyPath+":token", bodies)
	router.NotFound = page
	return router
}

// Allowed are the methods that an address answers, from the Allow header that
// the router has written: what answers GET answers HEAD, and nothing OPTIONS.
func Allowed(header http.Header) []string {
	var allowed []string
	for _, method := range strings.Split(header.Get("Allow"), ", ") {
		switch method {
		case http.MethodOptions, http.MethodHead:
		case http.MethodGet:
			allowed = append(allowed, method, http.MethodHead)
		default:
			allowed = append(allowed, method)
		}
	}
	return allowed
}

// reloaded is what became of a reload.
type reloaded struct {
	Status   string   `json:"status"`
	Warnings []string `json:"warnings,omitempty"`
}

// replyAction answers with an action as it stands at its end, or after ?wait=1s
// where that is asked for and comes first: then it goes on by itself.
func replyAction(w http.ResponseWriter, r *http.Request, do func(context.Context) (event.Action, error)) {
	ctx := r.Context()
	if text := r.URL.Query().Get("wait"); text != "" {
		wait, err := time.ParseDuration(text)
		if err != nil {
			problem(w, http.StatusBadRequest, err.Error())
			return
		}
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, wait)
		defer stop()
	}
	done, err := do(ctx)
	if errors.Is(err, context.DeadlineExceeded) && done.ID > 0 {
		err = nil
	}
	reply(w, done, err)
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
		write(w, http.StatusInternalServerError, Problem{Error: err.Error(), Hint: HintOf(err)})
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
	Hint  string `json:"hint,omitempty"` // what to do next
}

func problem(w http.ResponseWriter, status int, text string) { write(w, status, Problem{Error: text}) }

func write(w http.ResponseWriter, status int, p Problem) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p)
}

// HintOf is what an error says that can be done; "" where it does not.
func HintOf(err error) string {
	var knows interface{ Hint() string }
	if errors.As(err, &knows) {
		return knows.Hint()
	}
	return ""
}

// hinted is an error of the server with what it said can be done.
type hinted struct{ Problem }

func (h hinted) Error() string { return h.Problem.Error }
func (h hinted) Hint() string  { return h.Problem.Hint }
