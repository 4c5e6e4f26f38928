package app

import (
	"context"
	"fmt"
	"net/http"

	"creel/admin"
	"creel/admin/api"
	"creel/admin/page"
	"creel/event"
	"creel/receiver"
)

// openPage makes what answers on the operator's listener, once its address is
// known.
func (a *App) openPage(ctx context.Context) (http.Handler, error) {
	if err := a.openGate(ctx); err != nil {
		return nil, err
	}
	var err error
	operator := pageOperator{a, newPlans(a.opt.Clock)}
	a.page, err = page.New(page.Options{
		PublicURL: a.snapshot.Load().Config.Admin.PublicURL, Listen: a.AdminListen, Password: a.knowsPassword,
		Peer: a.peer, Guessed: a.countGuess, Clock: a.opt.Clock, Log: a.opt.Log, Data: pageData{a}, Operator: operator,
	})
	if err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	programs, err := api.New(api.Options{
		Data: pageData{a}, Operator: operator, Statistics: a.Statistics, Token: a.TokenOf,
		Visitor: a.page.Visitor, Allows: a.page.Allows, Peer: a.peer, Guessed: a.countGuess,
		Clock: a.opt.Clock, Log: a.opt.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("make the API: %w", err)
	}
	return a.page.Front(admin.Operator(a, a.bodies, programs.Before(a.page))), nil
}

// peer is who asks the page or the API, as far as trusted proxies tell.
func (a *App) peer(r *http.Request) string {
	proxies, err := receiver.ParseProxies(a.snapshot.Load().Config.TrustedProxies)
	if peer := receiver.PeerOf(r, proxies); err == nil && peer.IsValid() {
		return peer.String()
	}
	return admin.Address(r)
}

// PageURL is where a browser finds the page.
func (a *App) PageURL() string {
	if public := a.snapshot.Load().Config.Admin.PublicURL; public != "" {
		return public
	}
	return "http://" + reachable(a.AdminListen) + "/"
}

// pageOperator is what the page does. It goes the way of the command line.
type pageOperator struct {
	app   *App
	plans *plans
}

func (o pageOperator) Act(ctx context.Context, action event.Action) (event.Action, error) {
	return o.app.Act(ctx, action)
}

func (o pageOperator) RetryRejects(ctx context.Context, ask admin.RetryRejects) ([]admin.RetriedReject, error) {
	return o.app.RetryRejects(ctx, ask)
}

func (o pageOperator) CreateToken(ctx context.Context, actor, name string, scope event.Scope) (string, event.Token, error) {
	return o.app.CreateToken(ctx, event.Action{Actor: actor}, event.Token{Name: name, Scope: scope})
}

func (o pageOperator) RevokeToken(ctx context.Context, actor string, id int64) error {
	return o.app.RevokeToken(ctx, event.Action{Actor: actor}, id)
}
