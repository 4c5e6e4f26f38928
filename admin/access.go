package admin

import (
	"context"
	"net/http"
	"strconv"

	"github.com/julienschmidt/httprouter"

	"creel/event"
)

// Access is who may use the page and the API.
type Access interface {
	// NewPassword makes a password for the page and ends every session.
	NewPassword(ctx context.Context, action event.Action) (string, error)
	// CreateToken makes a token; its text is shown once.
	CreateToken(ctx context.Context, action event.Action, token event.Token) (string, event.Token, error)
	// RevokeToken ends a token; event.ErrNotFound.
	RevokeToken(ctx context.Context, action event.Action, id int64) error
	Tokens(ctx context.Context) ([]event.Token, error)
}

// AskToken asks for a token.
type AskToken struct {
	Name   string      `json:"name"`
	Scope  event.Scope `json:"scope"`
	Actor  string      `json:"actor"`
	Reason string      `json:"reason,omitempty"`
}

// MadeToken is a new token with its text, which nobody can see again.
type MadeToken struct {
	event.Token
	Secret string `json:"token"`
}

// Actor is who asks for something that needs nothing else to be known.
type Actor struct {
	Actor  string `json:"actor"`
	Reason string `json:"reason,omitempty"`
}

// MadePassword is a new password of the page.
type MadePassword struct {
	Password string `json:"password"`
}

// routeAccess is for the control socket alone: it hands out what lets others in.
func routeAccess(router *httprouter.Router, ops Access) {
	router.POST("/api/v1/password", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		asked(w, r, func(ctx context.Context, ask Actor) (MadePassword, error) {
			made, err := ops.NewPassword(ctx, event.Action{Actor: ask.Actor, Reason: ask.Reason})
			return MadePassword{made}, err
		})
	})
	router.GET("/api/v1/tokens", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		list, err := ops.Tokens(r.Context())
		reply(w, list, err)
	})
	router.POST("/api/v1/tokens", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		asked(w, r, func(ctx context.Context, ask AskToken) (MadeToken, error) {
			secret, token, err := ops.CreateToken(ctx, event.Action{Actor: ask.Actor, Reason: ask.Reason},
				event.Token{Name: ask.Name, Scope: ask.Scope})
			return MadeToken{token, secret}, err
		})
	})
	router.POST("/api/v1/tokens/:id/revoke", func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		id, ok := number(w, params)
		if !ok {
			return
		}
		asked(w, r, func(ctx context.Context, ask Actor) (map[string]string, error) {
			return map[string]string{"status": "revoked"}, ops.RevokeToken(ctx, event.Action{Actor: ask.Actor, Reason: ask.Reason}, id)
		})
	})
}

// NewPassword asks for a new password of the page.
func (c *Client) NewPassword(ctx context.Context, ask Actor) (string, error) {
	var made MadePassword
	err := c.call(ctx, http.MethodPost, "/api/v1/password", ask, &made)
	return made.Password, err
}

// CreateToken asks for a token.
func (c *Client) CreateToken(ctx context.Context, ask AskToken) (MadeToken, error) {
	var made MadeToken
	err := c.call(ctx, http.MethodPost, "/api/v1/tokens", ask, &made)
	return made, err
}

// RevokeToken asks to end a token.
func (c *Client) RevokeToken(ctx context.Context, id int64, ask Actor) error {
	return c.call(ctx, http.MethodPost, "/api/v1/tokens/"+strconv.FormatInt(id, 10)+"/revoke", ask, nil)
}
