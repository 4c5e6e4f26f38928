package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"creel/event"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets/*
var assetFiles embed.FS

// templates are the pages by name, each with the layout around it.
type templates map[string]*template.Template

// parseTemplates compiles every page. The files of parts, whose names begin
// with an underscore, are known to all.
func parseTemplates(prefix string) (templates, error) {
	base := template.New("layout").Funcs(functions(prefix))
	parts, err := fs.Glob(templateFiles, "templates/_*.html")
	if err != nil {
		return nil, err
	}
	if base, err = base.ParseFS(templateFiles, parts...); err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	all := templates{}
	files, err := fs.Glob(templateFiles, "templates/[^_]*.html")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		one, err := base.Clone()
		if err == nil {
			one, err = one.ParseFS(templateFiles, file)
		}
		if err != nil {
			return nil, fmt.Errorf("page: %w", err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".html")
		all[name] = one
	}
	return all, nil
}

// layout is what is around every page.
type layout struct {
	Title    string
	Here     string // the entry of the menu that is lit
	Operator string // "" before the login
	Token    string
	Live     bool // the page may load itself again
	Notice   string
	Signals  []event.Signal // the five first, as a line below the menu
	AsOf     time.Time      // when they were measured
	Now      time.Time      // when the page was made
	Content  any
}

// render writes a page. It is made whole first, so that an error in the middle
// is no half page.
func (q *request) render(status int, name string, l layout) {
	signals, asOf := q.data().Signals()
	l.Operator, l.Token, l.Signals, l.AsOf, l.Now = q.session.name, q.session.token, firstSignals(signals), asOf, q.now
	if !live(q.r) {
		l.Notice = q.page.sessions.hear(q.page.cookie.read(q.r), q.r.URL.RequestURI())
	}
	q.page.write(q.w, status, name, l)
}

func (p *Page) renderLogin(w http.ResponseWriter, status int, view loginView) {
	p.write(w, status, "login", layout{Title: "Login", Content: view})
}

func (p *Page) write(w http.ResponseWriter, status int, name string, l layout) {
	var b bytes.Buffer
	if err := p.templates[name].ExecuteTemplate(&b, "layout", l); err != nil {
		p.opt.Log.Error().Err(err).Str("page", name).Msg("a page could not be rendered")
		http.Error(w, "This page could not be made; the log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(plainly(b.Bytes()))
}

// asset gives one of our own files. They may be seen before the login.
func (p *Page) asset(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
	name := params.ByName("name")
	content, err := assetFiles.ReadFile("assets/" + name)
	if err != nil || strings.Contains(name, "/") {
		http.NotFound(w, r)
		return
	}
	kind := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for end, value := range kind {
		if strings.HasSuffix(name, end) {
			w.Header().Set("Content-Type", value)
		}
	}
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(content)
}
