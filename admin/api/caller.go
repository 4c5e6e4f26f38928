package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"creel/event"
)

// caller is who asks.
type caller struct {
	name     string // as it stands in the audit trail
	session  bool   // of the page, and not a token
	operates bool
}

type callerKey struct{}

// The answers to whoever is not let in are the same for every cause.
var (
	errNobody  = problem{http.StatusUnauthorized, "this needs a token that holds", "send Authorization: Bearer TOKEN; creel token create NAME --scope read makes one"}
	errGuesses = problem{http.StatusTooManyRequests, "too many tokens were tried", "wait a minute"}
	errSession = problem{http.StatusForbidden, "a session of the page may only look here", "send a token of the scope operate: creel token create NAME --scope operate"}
	errScope   = problem{http.StatusForbidden, "this token may only look", "creel token create NAME --scope operate makes one that may act"}
)

func (c caller) mayOnlyLook() error {
	if c.session {
		return errSession
	}
	return errScope
}

// identify tells who asks: by the token that he shows or, where he shows none,
// by his session of the page. A token has 130 bits that nobody guesses, and to
// look one up costs no more than to count guesses: so a token that holds is let in
// however many do not, and the limit is for what those cost in the log.
func (a *API) identify(w http.ResponseWriter, r *http.Request) (caller, error) {
	shown, tried := bearer(r)
	if !tried {
		if name, ok := a.opt.Visitor(r); ok {
			return caller{name: "page:" + name, session: true}, nil
		}
		w.Header().Set("WWW-Authenticate", challenge)
		return caller{}, errNobody
	}
	token, ok, err := a.opt.Token(r.Context(), shown)
	if err != nil {
		return caller{}, fmt.Errorf("find a token: %w", err)
	}
	if !ok {
		address := a.opt.Peer(r)
		a.opt.Guessed()
		if wait, ok := a.guesses.Take(address); !ok {
			w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
			return caller{}, errGuesses
		}
		a.opt.Log.Warn().Str(event.FieldPeer, address).Str(event.FieldHint, "a program has a token that was revoked, or somebody guesses").
			Msg("request with a token that does not hold")
		w.Header().Set("WWW-Authenticate", challenge)
		return caller{}, errNobody
	}
	return caller{name: fmt.Sprintf("token:%s#%d", token.Name, token.ID), operates: token.Scope == event.ScopeOperate}, nil
}

// bearer is the token that a request shows, and whether it shows any. What a
// proxy asks for itself in the same header is none of ours.
func bearer(r *http.Request) (token string, ok bool) {
	for _, line := range r.Header.Values("Authorization") {
		scheme, shown, _ := strings.Cut(line, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			continue
		}
		if ok {
			return "", true // of two tokens none
		}
		token, ok = strings.TrimSpace(shown), true
	}
	return token, ok
}

// challenge is what RFC 6750 wants beside a 401.
const challenge = `Bearer realm="creel"`
