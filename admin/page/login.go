package page

import (
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"creel/event"
)

// loginView is what the login page shows.
type loginView struct {
	To    string
	Name  string
	Error string
}

func (p *Page) showLogin(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	to := r.URL.Query().Get("to")
	if p.sessions.find(p.cookie.read(r)) != nil {
		http.Redirect(w, r, p.prefix+within(to), http.StatusSeeOther)
		return
	}
	p.renderLogin(w, http.StatusOK, loginView{To: within(to)})
}

// within keeps a way back on this page: a path, of nobody else's host. A
// browser drops control characters and takes a backslash for a slash.
func within(to string) string {
	there, err := url.Parse(to)
	odd := func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }
	if err != nil || there.IsAbs() || there.Host != "" || !strings.HasPrefix(to, "/") || strings.ContainsFunc(to, odd) ||
		path.Clean(there.Path) != there.Path || there.Path == "/login" {
		return "/"
	}
	return to
}

// maxName bounds the name that stands in the audit trail, in bytes.
const maxName = 64

// login compares the password, one at a time, and only as often as guesses
// are granted. A session gets a new id whatever the browser brought along.
func (p *Page) login(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := r.ParseForm(); err != nil {
		p.renderLogin(w, http.StatusBadRequest, loginView{To: "/", Error: "The form could not be read."})
		return
	}
	view := loginView{To: within(r.PostForm.Get("to")), Name: named(r.PostForm.Get("name"))}
	address, browser := p.opt.Peer(r), p.known().read(r)
	take := func() (time.Duration, bool) { return p.guesses.Take(address) }
	if p.browsers.has(browser) {
		take = func() (time.Duration, bool) { return p.guesses.TakeOf(browser) }
	}
	wait, ok := take()
	if !ok {
		p.opt.Guessed()
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		view.Error = "Too many logins were tried. Wait a minute."
		p.renderLogin(w, http.StatusTooManyRequests, view)
		return
	}
	if !p.knows(r, r.PostForm.Get("password")) {
		p.opt.Guessed()
		p.opt.Log.Warn().Str(event.FieldPeer, address).Str(event.FieldHint, "repeated lines like this one are somebody who guesses").
			Msg("login with a wrong password")
		view.Error = "That is not the password."
		p.renderLogin(w, http.StatusUnauthorized, view)
		return
	}
	p.guesses.Forgive(address)
	if old := p.cookie.read(r); old != "" {
		p.sessions.end(old)
	}
	p.cookie.write(w, p.sessions.begin(view.Name))
	p.known().write(w, p.browsers.add())
	p.opt.Log.Info().Str(event.FieldActor, view.Name).Str(event.FieldPeer, address).Msg("login")
	http.Redirect(w, r, p.prefix+view.To, http.StatusSeeOther)
}

// knows compares one password at a time: the hash is slow and wants memory.
func (p *Page) knows(r *http.Request, given string) bool {
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
		return p.opt.Password(given)
	case <-r.Context().Done():
		return false
	}
}

// named is the name of an operator as the audit trail takes it: in characters
// that are seen, so that nobody is taken for another.
func named(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return r != ' ' && !seen(r, 0) }), " ")
	if text = strings.TrimSpace(text); text == "" {
		return "page"
	}
	if len(text) > maxName {
		text = strings.ToValidUTF8(text[:maxName], "")
	}
	return text
}

func (p *Page) logout(q *request) {
	p.sessions.end(p.cookie.read(q.r))
	p.cookie.write(q.w, "")
	http.Redirect(q.w, q.r, p.prefix+"/login", http.StatusSeeOther)
}
