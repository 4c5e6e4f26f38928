package receiver

import (
	"net/http"

	"github.com/julienschmidt/httprouter"
)

// routes is the only place that knows the router. Everything that httprouter
// would do by itself is off: a redirect is a failure to a sender, OPTIONS is a
// method like any other, and its 405 would list OPTIONS as allowed.
func (v *Receiver) routes() http.Handler {
	router := &httprouter.Router{}
	for _, path := range []string{"/in/:source", "/in/:source/"} {
		router.POST(path, func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
			v.receive(w, r, params[0].Value)
		})
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			router.Handle(method, path, func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
				v.probe(w, r, params[0].Value)
			})
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		router.Handle(method, "/healthz", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
			reply(w, r, resultAlive, 0)
		})
		router.Handle(method, "/readyz", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
			v.ready(w, r)
		})
	}
	router.NotFound = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handle, params, _ := router.Lookup(http.MethodGet, r.URL.Path); handle != nil {
			v.wrongMethod(w, r, params.ByName("source"))
			return
		}
		v.unknown(w, r)
	})
	return router
}
