package page

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A page that brings itself up to date is no use of the session by anybody: one
// that was left open ends like any other.
func TestGateO6APageLeftOpenEndsTheSession(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	b := s.browser(t)
	b.login(t)
	for range 30 {
		s.pass(time.Minute)
		res, _ := b.get(t, "/", "Creel-Live", "1")
		status(t, "within half an hour", res, http.StatusOK)
	}
	s.pass(time.Minute)
	res, _ := b.get(t, "/", "Creel-Live", "1")
	status(t, "after half an hour in which nobody did anything", res, http.StatusSeeOther)
}

// What was done is said on the page that follows, to whoever did it: neither
// another window nor a page that brings itself up to date takes it away.
func TestNoticesStandWhereTheyBelong(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	b := s.browser(t)
	b.login(t)
	res, _ := b.do(t, http.MethodPost, "/replay", url.Values{"one": {"1 shop//a"}, "back": {"/?view=flat#row"}, "token": {b.token(t)}})
	status(t, "replay", res, http.StatusSeeOther)
	const said = "is replayed"
	for what, c := range map[string]struct {
		path   string
		header []string
	}{"another window": {"/", nil}, "the same page, anew": {"/?view=flat", []string{"Creel-Live", "1"}}} {
		if _, text := b.get(t, c.path, c.header...); strings.Contains(text, said) {
			t.Errorf("%s says it", what)
		}
	}
	if _, text := b.get(t, "/?view=flat"); !strings.Contains(text, said) {
		t.Error("the page that follows does not say what was done")
	}
	if _, text := b.get(t, "/?view=flat"); strings.Contains(text, said) {
		t.Error("it is said twice")
	}
}

// The line of signals says when they were measured, in which zone.
func TestSignalsSayWhenTheyWereMeasured(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	b := s.browser(t)
	b.login(t)
	if _, text := b.get(t, "/"); !strings.Contains(text, `as of <time datetime="2026-01-02T03:03:58Z">03:03:58</time> UTC`) {
		t.Error("no time")
	}
}
