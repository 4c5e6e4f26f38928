package page

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/rs/zerolog"

	"creel/admin"
)

// Options are what a page is made of.
type Options struct {
	// PublicURL is where the page is reached from outside, "" where that is
	// Listen. Its path is the prefix that a proxy strips.
	PublicURL string
	Listen    string // host:port of the operator's listener
	// Password tells whether a login knows the password. It may take long: it
	// is asked for one login at a time.
	Password func(given string) bool
	// Peer is the address of whoever asks, without a port; nil is that of the
	// connection.
	Peer     func(r *http.Request) string
	Guessed  func() // is told of every wrong password; nil where nobody is
	Clock    func() time.Time
	Log      zerolog.Logger
	Data     Data
	Operator Operator
}

// Page is the operator's page.
type Page struct {
	opt       Options
	prefix    string // of every link: "" or "/creel"
	stripped  string // the same, as it stands in a path that is decoded
	hosts     hosts
	cookie    cookie
	sessions  *sessions
	browsers  *browsers
	guesses   *admin.Guesses
	asking    chan struct{} // one password is compared at a time
	templates templates
	handler   http.Handler
}

var errOptions = errors.New("page: a page needs a password, a clock and its data")

// New makes a page. It is an http.Handler for everything below the root of
// the operator's listener that nothing else answers; Front stands before all.
func New(opt Options) (*Page, error) {
	if opt.Password == nil || opt.Clock == nil || opt.Data == nil || opt.Operator == nil {
		return nil, errOptions
	}
	if opt.Peer == nil {
		opt.Peer = admin.Address
	}
	if opt.Guessed == nil {
		opt.Guessed = func() {}
	}
	p := &Page{opt: opt, sessions: newSessions(opt.Clock), browsers: newBrowsers(), guesses: admin.NewGuesses(opt.Clock), asking: make(chan struct{}, 1)}
	host, secure := "", false
	if opt.PublicURL != "" {
		public, err := url.Parse(opt.PublicURL)
		if err != nil {
			return nil, err
		}
		p.prefix, p.stripped = strings.TrimSuffix(public.EscapedPath(), "/"), strings.TrimSuffix(public.Path, "/")
		host, secure = public.Host, public.Scheme == "https"
	}
	p.cookie = newCookie("creel_session", p.prefix, secure)
	var err error
	if p.templates, err = parseTemplates(p.prefix); err != nil {
		return nil, err
	}
	// Only a form of our own changes anything: by where it came from, and by
	// the token that each form carries.
	sameOrigin := http.NewCrossOriginProtection().Handler(p.router())
	p.hosts = newHosts(host, opt.Listen)
	p.handler = p.hosts.guard(sameOrigin)
	return p, nil
}

// Allows tells whether the page answers under the name that a request asks for.
func (p *Page) Allows(r *http.Request) bool { return p.hosts.allow(r.Host) }

// Visitor is the name of whoever has logged in and asks; false where nobody has.
func (p *Page) Visitor(r *http.Request) (name string, ok bool) {
	session := p.sessions.find(p.cookie.read(r))
	if session == nil {
		return "", false
	}
	return session.name, true
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// router is the table of what the page answers. Whatever is not in it needs a
// login too, so that a stranger can not tell what exists.
func (p *Page) router() http.Handler {
	router := httprouter.New()
	router.RedirectTrailingSlash, router.RedirectFixedPath, router.HandleOPTIONS = false, false, false
	router.GET("/login", p.showLogin)
	router.POST("/login", p.login)
	router.GET("/assets/:name", p.asset)
	router.POST("/logout", p.act(p.logout))
	for path, view := range p.views() {
		router.GET(path, p.see(view))
	}
	for path, deed := range p.deeds() {
		router.POST(path, p.act(deed))
	}
	router.NotFound = p.plain(p.see(func(q *request) { q.fail(http.StatusNotFound, "There is nothing here.") }))
	router.MethodNotAllowed = http.HandlerFunc(p.otherMethod)
	return router
}

// otherMethod answers whoever asks for something of ours in a way that it does
// not answer. To strangers it looks like everything else.
func (p *Page) otherMethod(w http.ResponseWriter, r *http.Request) {
	allowed := admin.Allowed(w.Header())
	if p.sessions.find(p.cookie.read(r)) == nil {
		w.Header().Del("Allow")
		p.admit(w, r)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	http.Error(w, "This can not be asked in this way.", http.StatusMethodNotAllowed)
}

func (p *Page) plain(handle httprouter.Handle) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, nil) })
}

// see lets a view be seen by whoever has logged in; everybody else is sent to
// the login, and back afterwards.
func (p *Page) see(view func(*request)) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		session := p.sessions.look(p.cookie.read(r), !live(r))
		if session == nil {
			p.admit(w, r)
			return
		}
		q, done := p.newRequest(w, r, params, session)
		defer done()
		view(q)
	}
}

// live tells whether a page asks for itself anew, on its own: nobody need be
// there.
func live(r *http.Request) bool { return r.Header.Get("Creel-Live") != "" }

// admit sends whoever has no session to the login, and back afterwards. A
// browser that comes from elsewhere, by the link in an alert, leaves a strict
// cookie at home: our own page sends it on, to come with it.
func (p *Page) admit(w http.ResponseWriter, r *http.Request) {
	login := p.prefix + "/login?to=" + url.QueryEscape(r.URL.RequestURI())
	if from := r.Header.Get("Sec-Fetch-Site"); from == "cross-site" || from == "same-site" {
		p.write(w, http.StatusOK, "again", layout{Title: "Creel", Content: login})
		return
	}
	http.Redirect(w, r, login, http.StatusSeeOther)
}

// EndSessions logs everybody out: the password is another one.
func (p *Page) EndSessions() {
	p.sessions.endAll()
	p.browsers.forget()
}

// maxForm bounds a form, in bytes: a selection of a page names its rows.
const maxForm = 1 << 20

// act lets a form of this session change something.
func (p *Page) act(deed func(*request)) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		session := p.sessions.find(p.cookie.read(r))
		if session == nil {
			http.Redirect(w, r, p.prefix+"/login", http.StatusSeeOther)
			return
		}
		q, done := p.newRequest(w, r, params, session)
		defer done()
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			q.fail(http.StatusBadRequest, "The form could not be read.")
			return
		}
		if !session.valid(r.PostForm.Get("token")) {
			q.fail(http.StatusForbidden, "This form is not of your session. Go back, load the page again, and repeat it.")
			return
		}
		deed(q)
	}
}
