package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	"creel/config"
	"creel/event"
	"creel/path"
)

// FetchRequest asks for the current object of a rule at its owner: one GET.
type FetchRequest struct {
	Rule    string
	URL     string // what the event put into it is escaped
	Headers map[string]config.Secret
	Token   config.Secret // sent as Authorization: Bearer; zero where there is none
	Timeout time.Duration
}

// DecideFetched is Decide with the answers to the requests of a Decision, by
// rule: the JSON text of the object. The decision may ask again, for a rule
// that has no answer yet.
func (rs *Rules) DecideFetched(ctx context.Context, work event.Work, answers map[string][]byte) Decision {
	return rs.decide(ctx, work, given{answers: answers})
}

// DecideTied is Decide after the store said event.ErrTie: every rule that keeps
// a state and has a fetch asks for its object.
func (rs *Rules) DecideTied(ctx context.Context, work event.Work) Decision {
	return rs.decide(ctx, work, given{tied: true})
}

// Slow tells whether the rules of an event may wait for something outside: a
// fetch or a Go handler.
func (rs *Rules) Slow(e *event.Event) bool {
	for _, r := range rs.rules {
		if (r.fetch != nil || r.goName != "") && r.matches(e) {
			return true
		}
	}
	return false
}

// given is what is known beside the event.
type given struct {
	answers map[string][]byte // by rule
	tied    bool
}

// fetch is the compiled [rule.fetch].
type fetch struct {
	url     *path.Template
	into    path.Path
	version *path.Template // what the fetch is for where it is missing
	always  bool
	request FetchRequest // but for the URL
}

func (c *compiler) fetch(at string, r *config.Rule) *fetch {
	f := r.Fetch
	if f == nil {
		return nil
	}
	out := &fetch{always: f.Always, request: FetchRequest{
		Rule: r.Name, Headers: maps.Clone(f.Headers), Token: f.Token, Timeout: time.Duration(f.Timeout),
	}}
	out.url = c.needed(config.Join(at, "url"), f.URL, `such as url = "https://api.example.com/orders/{object}"`)
	if out.url != nil && !fixedHost(out.url) {
		c.fault(config.Join(at, "url"), "does not begin with an address that is the same for every event",
			`write scheme, host and a slash before the first place, such as "https://api.example.com/orders/{object}"`)
	} else if out.url != nil && !varies(out.url) {
		c.fault(config.Join(at, "url"), "is the same for every event", "put a place of the event into it, such as {object}")
	}
	into, err := path.Parse(cmp.Or(f.Into, "body"))
	if err == nil && (into.Root() != path.Body || into.Optional()) {
		err = path.ErrBadPath
	}
	if err != nil {
		c.fault(config.Join(at, "into"), err.Error(), `"body", or the place of the object such as "body.data.object"`)
	}
	out.into = into
	version := defaultVersion
	if r.State != nil && r.State.Version != "" {
		version = r.State.Version
	}
	out.version, _ = path.ParseTemplate(version, path.EventNames()...) // what is wrong with it is said of the state
	return out
}

// fixedHost tells whether scheme and host are written out: no event decides
// whom the token is sent to.
func fixedHost(t *path.Template) bool {
	first := t.Pieces()[0].Literal
	rest, ok := strings.CutPrefix(first, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(first, "http://")
	}
	host, _, slash := strings.Cut(rest, "/")
	u, err := url.Parse("http://" + host)
	return ok && slash && err == nil && u.Hostname() != "" && u.User == nil && u.Host == host
}

// wanted tells whether a rule has to see the current object before it can say
// anything about an event. An error is left to whoever applies the rule.
func (r *rule) wanted(ctx context.Context, s *subject, g given) bool {
	f := r.fetch
	if _, answered := g.answers[r.name]; f == nil || answered {
		return false
	}
	if !f.always {
		version, err := versionFrom(f.version, s)
		tied := g.tied && (r.state != nil || r.goName != "")
		if err != nil || version != "" && !tied {
			return false
		}
		if r.when != nil {
			// A condition that can not be read here may be one about the object.
			if held, err := r.when.holds(ctx, s); err == nil && !held {
				return false
			}
		}
	}
	return true
}

// ask makes the request of a rule for an event.
func (f *fetch) ask(s *subject) (FetchRequest, error) {
	out := f.request
	var err error
	out.URL, err = s.url(f.url)
	return out, err
}

var errDots = errors.New("has a step of dots, which would lead elsewhere")

// url renders the template of a URL: values are escaped for where they stand,
// and an empty one counts as missing, since it would ask for something else.
func (s *subject) url(t *path.Template) (string, error) {
	var b strings.Builder
	escape, query := url.PathEscape, false
	for _, piece := range t.Pieces() {
		if piece.Literal != "" {
			b.WriteString(piece.Literal)
			if query = query || strings.Contains(piece.Literal, "?"); query {
				escape = url.QueryEscape
			}
			continue
		}
		text, ok, err := piece.Text(s.doc, s.name)
		if err == nil && (!ok || text == "") && !piece.Optional {
			err = &path.PlaceError{Place: piece.Place(), Err: path.ErrMissing}
		}
		if err != nil {
			return "", err
		}
		b.WriteString(escape(text))
	}
	steps, _, _ := strings.Cut(b.String(), "?")
	for step := range strings.SplitSeq(steps, "/") {
		if step == "." || step == ".." {
			return "", errDots
		}
	}
	return b.String(), nil
}

// current is the event as a rule sees it: with the object that was fetched in
// its place, where one was.
func (r *rule) current(s *subject, g given) (*subject, bool, error) {
	answer, ok := g.answers[r.name]
	if !ok || r.fetch == nil {
		return s, false, nil
	}
	object := path.NewDocument(event.Payload{Body: answer})
	if err := object.Check(); err != nil {
		// A page that says "maintenance" under 200 is no fault of the event.
		return nil, false, &handlerError{err: fmt.Errorf("the answer is no object: %w", err)}
	}
	text, _ := object.Body()
	body, err := s.doc.Splice(r.fetch.into, text)
	if err != nil {
		return nil, false, fmt.Errorf("into: %w", err)
	}
	seen := *s
	seen.body = body
	seen.doc = seen.document()
	return &seen, true, nil
}

// waiting lists what has to be asked before the rules can decide. What is wrong
// with a request is told where the rule is applied.
func (rs *Rules) waiting(ctx context.Context, s *subject, g given) []FetchRequest {
	var out []FetchRequest
	for _, r := range rs.rules {
		if r.fetch == nil || !r.matches(&s.work.Event) {
			continue
		}
		if request, ok := r.asks(ctx, s, g); ok {
			out = append(out, request)
		}
	}
	return out
}

func (r *rule) asks(ctx context.Context, s *subject, g given) (request FetchRequest, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // it comes again where the rule is applied, and is told there
		}
	}()
	if !r.wanted(ctx, s, g) {
		return FetchRequest{}, false
	}
	request, err := r.fetch.ask(s)
	return request, err == nil
}
