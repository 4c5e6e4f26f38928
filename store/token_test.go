package store

import (
	"crypto/sha256"
	"errors"
	"testing"

	"creel/event"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	hash := sha256.Sum256([]byte("shown once"))
	made, err := sc.AddToken(t.Context(), sc.now, event.Action{Actor: "ana", Reason: "for the script"}, event.Token{Name: "script", Scope: event.ScopeRead}, hash)
	must(t, err)
	got, ok, err := sc.TokenOf(t.Context(), hash)
	must(t, err)
	if !ok || got != made || got.Scope != event.ScopeRead || !got.Created.Equal(sc.now) {
		t.Errorf("found %+v, %t, of %+v", got, ok, made)
	}
	if _, ok, _ := sc.TokenOf(t.Context(), sha256.Sum256([]byte("guessed"))); ok {
		t.Error("a guess is a token")
	}
	must(t, sc.RevokeToken(t.Context(), sc.now, event.Action{Actor: "ana"}, made.ID))
	if _, ok, _ := sc.TokenOf(t.Context(), hash); ok {
		t.Error("a revoked token holds")
	}
	if err := sc.RevokeToken(t.Context(), sc.now, event.Action{Actor: "ana"}, made.ID); !errors.Is(err, event.ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	actions, err := sc.Actions(t.Context(), event.Page{})
	must(t, err)
	if len(actions) != 2 || actions[0].Kind != event.ActionNoToken || actions[1].Target != "script" || actions[1].Finished.IsZero() {
		t.Errorf("audited as %+v", actions)
	}
	if list, err := sc.Tokens(t.Context()); err != nil || len(list) != 1 || list[0].Revoked.IsZero() {
		t.Errorf("listed as %+v, %v", list, err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	if _, ok, err := sc.Setting(t.Context(), "page password"); ok || err != nil {
		t.Errorf("there is one from the start: %v", err)
	}
	for _, value := range []string{"one", "two"} {
		must(t, sc.KeepSetting(t.Context(), sc.now, "page password", value))
		sc.crash("next")
		if got, ok, err := sc.Setting(t.Context(), "page password"); got != value || !ok || err != nil {
			t.Errorf("read %q, %t, %v", got, ok, err)
		}
	}
}
