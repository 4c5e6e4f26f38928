package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"creel/event"
)

// Somebody guesses passwords, and somebody else tokens: whether they are looked
// at or refused unseen, the owner is told once, and told when it is over.
func TestGateO6GuessesAreTold(t *testing.T) {
	t.Parallel()
	p := newPremises(t, `silence = "0s"`)
	p.AdminListen = "127.0.0.1:8081"
	page, err := p.openPage(context.Background())
	p.must(err)
	ask := func(method, path, body, authorization string) int {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Host = p.AdminListen
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		return w.Code
	}
	statuses := map[int]int{}
	for range 10 {
		statuses[ask(http.MethodPost, "/login", "password=guess", "")]++
	}
	for range 9 {
		statuses[ask(http.MethodGet, "/api/v1/events", "", "Bearer creel_guess")]++
	}
	ask(http.MethodGet, "/api/v1/events", "", "") // shows nothing: no guess
	if statuses[http.StatusUnauthorized] != 10 || statuses[http.StatusTooManyRequests] != 9 {
		t.Fatalf("answers %v", statuses)
	}
	p.pass(time.Minute, false)
	p.wantFiring(false, event.SignalGuesses, "")
	ask(http.MethodPost, "/login", "password=guess", "")
	p.pass(time.Minute, false)
	p.pass(5*time.Minute, false)
	p.wantFiring(true, event.SignalGuesses, "")
	p.wantTold("twenty guesses", "[creel] somebody guesses the password or a token of the page")
	ask(http.MethodPost, "/login", "password=guess", "")
	p.pass(2*time.Hour, false)
	p.wantFiring(false, event.SignalGuesses, "")
	p.wantTold("two hours later", "[creel] over: somebody guesses the password or a token of the page")
}
