package api

import (
	"context"
	_ "embed"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/rs/zerolog"

	"creel/admin"
	"creel/admin/page"
	"creel/event"
)

// Prefix begins every address of the API.
const Prefix = "/api/v1"

// Options are what the API is made of.
type Options struct {
	Data     page.Data
	Operator page.Operator
	// Statistics are figures about the server, ready to be written as JSON.
	Statistics func(ctx context.Context) (any, error)
	// Token finds the token that somebody shows; false says that none holds.
	Token func(ctx context.Context, shown string) (event.Token, bool, error)
	// Visitor is the name of whoever has a session of the page.
	Visitor func(r *http.Request) (string, bool)
	// Allows tells whether a request names this server as its host.
	Allows func(r *http.Request) bool
	// Peer is the address of whoever asks; nil is that of the connection.
	Peer    func(r *http.Request) string
	Guessed func() // is told of every token that does not hold; nil where nobody is
	Clock   func() time.Time
	Log     zerolog.Logger
}

// API answers below Prefix. What stands before the page stands before it too:
// the headers of every answer, and the way out of a panic.
type API struct {
	opt     Options
	guesses *admin.Guesses
	bodies  chan struct{} // room for answers that have a body
	exports chan struct{} // room for lists that are written whole
	router  *httprouter.Router
}

var errOptions = errors.New("api: it needs data, an operator, statistics, tokens, visitors, hosts and a clock")

// New makes the API.
func New(opt Options) (*API, error) {
	if opt.Data == nil || opt.Operator == nil || opt.Statistics == nil || opt.Token == nil || opt.Visitor == nil || opt.Allows == nil || opt.Clock == nil {
		return nil, errOptions
	}
	if opt.Peer == nil {
		opt.Peer = admin.Address
	}
	if opt.Guessed == nil {
		opt.Guessed = func() {}
	}
	a := &API{opt: opt, guesses: admin.NewGuesses(opt.Clock), bodies: make(chan struct{}, bodiesAtOnce), exports: make(chan struct{}, exportsAtOnce)}
	router := httprouter.New()
	router.RedirectTrailingSlash, router.RedirectFixedPath, router.HandleOPTIONS = false, false, false
	for _, one := range routes() {
		router.Handle(one.method, Prefix+one.path, a.handle(one))
	}
	router.NotFound = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reply(w, problem{http.StatusNotFound, "the API has no such address", "GET " + Prefix + "/openapi.json lists what there is"})
	})
	router.MethodNotAllowed = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allowed := admin.Allowed(w.Header())
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		reply(w, problem{http.StatusMethodNotAllowed, r.Method + " is not what this address answers", "it answers " + strings.Join(allowed, " and ")})
	})
	a.router = router
	return a, nil
}

// ServeHTTP implements http.Handler. Who asks is settled before anything that
// he asks for is looked at, so that a stranger can not tell what exists.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.opt.Allows(r) {
		reply(w, problem{http.StatusMisdirectedRequest, "the API does not answer under this name", "set [admin] public_url to the address that you use"})
		return
	}
	who, err := a.identify(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.router.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
}

// Before answers what is below /api, and leaves the rest to the page.
func (a *API) Before(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api" || strings.HasPrefix(r.URL.Path, "/api/") {
			a.ServeHTTP(w, r)
			return
		}
		page.ServeHTTP(w, r)
	})
}

// reading bounds how long an answer may be read from the store.
const reading = 10 * time.Second

// handle answers one route: with what its function returns, or with why not.
func (a *API) handle(one route) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		who := r.Context().Value(callerKey{}).(caller)
		if one.acts() && !who.operates {
			a.fail(w, r, who.mayOnlyLook())
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), reading)
		defer cancel()
		c := &call{api: a, route: one, w: w, r: r, ctx: ctx, params: params, who: who, now: a.opt.Clock().UTC()}
		if one.showsBody() {
			done, err := a.room(ctx, w)
			if err != nil {
				a.fail(w, r, err)
				return
			}
			defer done()
		}
		err := c.readQuery()
		var value any
		if err == nil {
			value, err = one.do(c)
		}
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if all, is := value.(exporter); is {
			a.write(w, r, all)
			return
		}
		reply(w, value)
	}
}

const (
	// bodiesAtOnce bounds how many answers with a body are in memory at once: one
	// may have 25 MiB, and twice that again as JSON.
	bodiesAtOnce = 4
	// bodyTime bounds how long whoever asked may take to read one.
	bodyTime = 2 * time.Minute
)

// room waits for room for an answer with a body; done gives it back.
func (a *API) room(ctx context.Context, w http.ResponseWriter) (done func(), err error) {
	select {
	case a.bodies <- struct{}{}:
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(bodyTime))
		return func() { <-a.bodies }, nil
	case <-ctx.Done():
		return nil, problem{http.StatusServiceUnavailable, "too many bodies are read at once", "ask again in a moment"}
	}
}

//go:embed openapi.json
var description []byte

// describe answers with the description of all this.
func describe(*call) (any, error) {
	return plain{kind: "application/json", data: description}, nil
}
