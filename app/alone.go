package app

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"creel/admin"
	"creel/config"
	"creel/event"
	"creel/store"
)

// alone opens the database where no server runs, with its lock, for one act on
// who may use the page and the API.
func alone(ctx context.Context, cfg *config.Config, do func(*App) error) error {
	return aloneWith(ctx, Options{Config: cfg, Log: zerolog.Nop(), Clock: time.Now}, do)
}

func aloneWith(ctx context.Context, opt Options, do func(*App) error) error {
	s, err := store.Open(ctx, store.Options{Path: opt.Config.Database, Log: opt.Log, Clock: opt.Clock})
	if err != nil {
		return err
	}
	a := &App{opt: opt, store: s}
	return errors.Join(do(a), s.Close())
}

// NewPasswordAlone is App.NewPassword where no server runs.
func NewPasswordAlone(ctx context.Context, cfg *config.Config, ask admin.Actor) (made string, err error) {
	if !cfg.Admin.Password.IsZero() {
		return "", refusal{errConfiguredPassword}
	}
	err = alone(ctx, cfg, func(a *App) (err error) {
		action := event.Action{Kind: event.ActionNewPassword, Actor: ask.Actor, Reason: ask.Reason}
		if _, err = a.store.Note(ctx, a.opt.Clock(), action); err == nil {
			made, err = a.makePassword(ctx)
		}
		return err
	})
	return made, err
}

// CreateTokenAlone is App.CreateToken where no server runs.
func CreateTokenAlone(ctx context.Context, cfg *config.Config, ask admin.AskToken) (made admin.MadeToken, err error) {
	err = alone(ctx, cfg, func(a *App) (err error) {
		made.Secret, made.Token, err = a.CreateToken(ctx, event.Action{Actor: ask.Actor, Reason: ask.Reason},
			event.Token{Name: ask.Name, Scope: ask.Scope})
		return err
	})
	return made, err
}

// RevokeTokenAlone is App.RevokeToken where no server runs.
func RevokeTokenAlone(ctx context.Context, cfg *config.Config, id int64, ask admin.Actor) error {
	return alone(ctx, cfg, func(a *App) error {
		return a.RevokeToken(ctx, event.Action{Actor: ask.Actor, Reason: ask.Reason}, id)
	})
}
