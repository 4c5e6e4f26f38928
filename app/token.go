package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"strings"

	"creel/event"
)

// tokenPrefix begins every token, so that one that leaked is known for what it
// is.
const tokenPrefix = "creel_"

// maxTokenName bounds the name of a token, in bytes.
const maxTokenName = 100

var (
	errTokenName  = errors.New("a token needs a name of at most 100 bytes, without line breaks")
	errTokenScope = errors.New("the scope of a token is read or operate")
)

// CreateToken implements admin.Access. What is returned is shown once; the store
// keeps its hash.
func (a *App) CreateToken(ctx context.Context, action event.Action, token event.Token) (string, event.Token, error) {
	if err := sound(action); err != nil {
		return "", token, err
	}
	token.Name = strings.TrimSpace(token.Name)
	if token.Name == "" || len(token.Name) > maxTokenName || strings.ContainsFunc(token.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", token, refusal{errTokenName}
	}
	if token.Scope != event.ScopeRead && token.Scope != event.ScopeOperate {
		return "", token, refusal{errTokenScope}
	}
	secret := tokenPrefix + rand.Text()
	made, err := a.store.AddToken(ctx, a.opt.Clock(), action, token, sha256.Sum256([]byte(secret)))
	if err != nil {
		return "", token, err
	}
	a.opt.Log.Info().Str(event.FieldActor, action.Actor).Str(event.FieldAction, string(event.ActionNewToken)).Msg("operator action")
	return secret, made, nil
}

// RevokeToken implements admin.Access.
func (a *App) RevokeToken(ctx context.Context, action event.Action, id int64) error {
	if err := sound(action); err != nil {
		return err
	}
	err := a.store.RevokeToken(ctx, a.opt.Clock(), action, id)
	if err == nil {
		a.opt.Log.Info().Str(event.FieldActor, action.Actor).Str(event.FieldAction, string(event.ActionNoToken)).Msg("operator action")
	}
	return err
}

// Tokens implements admin.Access.
func (a *App) Tokens(ctx context.Context) ([]event.Token, error) { return a.store.Tokens(ctx) }

// TokenOf finds the token that somebody shows; false says that none holds.
func (a *App) TokenOf(ctx context.Context, shown string) (event.Token, bool, error) {
	if !strings.HasPrefix(shown, tokenPrefix) {
		return event.Token{}, false, nil
	}
	return a.store.TokenOf(ctx, sha256.Sum256([]byte(shown)))
}
