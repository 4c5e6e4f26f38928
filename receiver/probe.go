package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/http"

	"creel/source"
)

// probe answers GET and HEAD on a source: a handshake, or the empty 200 that
// senders look for before they save an endpoint. It never touches the store.
func (v *Receiver) probe(w http.ResponseWriter, r *http.Request, name string) {
	disarm(r)
	src, ok := v.sources(name)
	if !ok {
		v.unknown(w, r)
		return
	}
	p := &reception{Receiver: v, w: w, r: r, src: src, name: name, endpoint: v.endpointOf(name)}
	p.body.budget = v.budget
	defer p.end()
	if v.stopping.Load() {
		p.answer(resultStopping, 0)
		return
	}
	request := &source.Request{Method: r.Method, Query: r.URL.RawQuery, Header: r.Header}
	if a, ok := src.Probe(request); ok {
		p.handshake(&a)
		return
	}
	if src.ProbeStatus() == http.StatusMethodNotAllowed {
		w.Header()["Allow"] = allowPost
		p.answer(resultRefusedProbe, 0)
		return
	}
	p.answer(resultProbe, src.ProbeStatus())
}

var (
	allowPost  = []string{"POST"}
	allowProbe = []string{"GET, HEAD, POST"}
	allowGet   = []string{"GET, HEAD"}
)

// wrongMethod answers the methods that a path of ours does not have. An
// unknown source has no methods at all.
func (v *Receiver) wrongMethod(w http.ResponseWriter, r *http.Request, name string) {
	disarm(r)
	counters, allow := &v.strangers, allowGet
	if name != "" {
		src, ok := v.sources(name)
		if !ok {
			v.unknown(w, r)
			return
		}
		counters, allow = &v.endpointOf(name).tally, allowProbe
		if src.ProbeStatus() == http.StatusMethodNotAllowed {
			allow = allowPost
		}
	}
	counters.count(resultMethod)
	w.Header()["Allow"] = allow
	reply(w, r, resultMethod, 0)
}

// unknown answers every path that is not ours, a source that does not exist
// among them: the same bytes after about the same work, so that neither tells
// which names exist.
func (v *Receiver) unknown(w http.ResponseWriter, r *http.Request) {
	disarm(r)
	mac := hmac.New(sha256.New, dummy[:32])
	mac.Write(dummy[:])
	hmac.Equal(mac.Sum(nil), dummy[:sha256.Size])
	v.strangers.count(resultUnknown)
	reply(w, r, resultUnknown, 0)
}

var dummy [1024]byte

// ready tells a load balancer whether events can be stored now.
func (v *Receiver) ready(w http.ResponseWriter, r *http.Request) {
	switch {
	case v.stopping.Load():
		reply(w, r, resultStopping, 0)
	case v.readyNow != nil && v.readyNow() != nil:
		reply(w, r, resultUnavailable, 0)
	default:
		reply(w, r, resultAlive, 0)
	}
}
