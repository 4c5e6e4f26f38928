package source

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"creel/config"
	"creel/path"
)

// Numbers of lists where neither preset nor owner says otherwise.
const (
	defaultReconcile = 7 * 24 * time.Hour
	defaultLag       = 15 * time.Minute
	defaultOverlap   = 24 * time.Hour
	defaultMaxPages  = 10_000
	defaultListRate  = 5 // requests a second
	defaultListWait  = 30 * time.Second
)

// lister compiles [source.reconcile] over what the preset knows.
func (c *compiler) lister(s *Source, own *config.Reconcile, env config.Environment) {
	if own == nil {
		return
	}
	in := *own
	if s.preset != nil && s.preset.Reconcile != nil {
		in = overlayList(*s.preset.Reconcile, in)
	}
	l := &Lister{src: s, method: orElse(in.Method, http.MethodGet), header: http.Header{"Accept": {"application/json"}, "User-Agent": {"Creel"}}, query: url.Values{}}
	l.rules = ListRules{Every: spanOr(in.Every, defaultReconcile), Import: in.Import, Lag: spanOr(in.Lag, defaultLag),
		Overlap: spanOr(in.Overlap, defaultOverlap), Reach: time.Duration(in.Reach), types: in.Types}
	if len(in.URL) == 0 {
		hint := "write url, items and what else [source.reconcile] in config.example.toml shows"
		c.fault(".reconcile", "it is not known where the sender lists its events", hint)
		return
	}
	for i, text := range in.URL {
		l.lists = append(l.lists, c.listURL(fmt.Sprintf(".reconcile.url[%d]", i), text))
	}
	c.listHead(l, in, env)
	c.listPages(l, in)
	c.listItems(l, in)
	if _, err := l.first(&url.URL{}, Span{}).turn("1").body(); err != nil {
		c.fault(".reconcile.query", err.Error(), "a name is a member, or leads to one, and not both")
	}
	timeout := time.Duration(in.Timeout)
	l.client = newListClient(orElse(timeout, defaultListWait))
	s.lister = l
}

func overlayList(base, over config.Reconcile) config.Reconcile {
	to, from := reflect.ValueOf(&base).Elem(), reflect.ValueOf(over)
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return base
}

func spanOr(d *config.Duration, fallback time.Duration) time.Duration {
	if d == nil {
		return fallback
	}
	return time.Duration(*d)
}

// newListClient follows no redirect: a token is for the address that the
// configuration names.
func newListClient(timeout time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second,
			TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12},
			DisableKeepAlives: false, IdleConnTimeout: 5 * time.Second, MaxIdleConnsPerHost: 1,
		},
	}
}

// listURL compiles an address. Its scheme and host have to be written out.
func (c *compiler) listURL(key, text string) template {
	t := c.template(key, text, false, nil)
	u, err := url.Parse(literalOf(t))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		c.fault(key, "does not begin with http:// or https://, a host and a slash", `such as "https://api.example.com/events"`)
	}
	return t
}

// literalOf is what stands before the first place.
func literalOf(t template) string {
	if len(t.pieces) == 0 {
		return ""
	}
	first := t.pieces[0].literal
	if len(t.pieces) > 1 && !strings.Contains(strings.TrimPrefix(strings.TrimPrefix(first, "https://"), "http://"), "/") {
		return "" // the host is not whole
	}
	return first
}

// listHead compiles what every request carries.
func (c *compiler) listHead(l *Lister, in config.Reconcile, env config.Environment) {
	set := func(key, name, prefix string, secret config.Secret) {
		value, err := secret.Resolve(env)
		if err != nil {
			c.unresolved(key, err)
			return
		}
		if strings.ContainsAny(string(value), "\r\n\x00") {
			c.fault(key, "has a character that no header can carry", "look for a line end inside it")
			return
		}
		for _, text := range secret.Warnings(env) {
			c.warn(key, text, "")
		}
		l.header.Set(name, prefix+string(value))
		if !secret.Literal() || prefix != "" {
			l.secret = append(l.secret, string(value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		set(".reconcile."+config.Join("headers", name), name, "", in.Headers[name])
	}
	if !in.Token.IsZero() {
		set(".reconcile.token", "Authorization", "Bearer ", in.Token)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Query)) {
		l.query.Set(name, in.Query[name])
	}
}

// listPages compiles how one page leads to the next.
func (c *compiler) listPages(l *Lister, in config.Reconcile) {
	l.from, l.to, l.size, l.cursor = in.From, in.To, in.Size, in.Cursor
	l.unit, l.pageSize, l.next = orElse(in.Unit, "s"), in.PageSize, orElse(in.Next, "none")
	l.oldest, l.maxPages = in.Order == "oldest", orElse(in.MaxPages, defaultMaxPages)
	l.every = time.Duration(float64(time.Second) / float64(orElse(float64(in.Rate), defaultListRate)))
	if l.size != "" && l.pageSize == 0 {
		c.fault(".reconcile.page_size", "size names a parameter, and there is no page_size", "such as 100")
	}
	need := func(missing bool, key, what string) {
		if missing {
			c.fault(".reconcile."+key, fmt.Sprintf("next = %q needs %s", l.next, what), "")
		}
	}
	switch l.next {
	case "last-id", "page":
		need(l.cursor == "", "cursor", "the parameter that names the next page")
		need(in.More == "" && l.pageSize == 0, "page_size", "page_size or more, to see the end of the list")
	case "body":
		need(in.NextAt == "", "next_at", "the place of the answer that names the next page")
	case "time":
		need(in.At == "", "at", "the time of an item")
		need(l.pageSize == 0, "page_size", "page_size, to see the end of the list")
		need(l.oldest && l.from == "", "from", "the parameter of the beginning")
		need(!l.oldest && l.to == "", "to", "the parameter of the end")
	}
	l.nextAt, l.more = c.maybePlace(".reconcile.next_at", in.NextAt), c.maybePlace(".reconcile.more", in.More)
}

func (c *compiler) maybePlace(key, text string) place {
	if text == "" {
		return place{}
	}
	return c.place(key, text, nil)
}

// listItems compiles what is read of an item.
func (c *compiler) listItems(l *Lister, in config.Reconcile) {
	items, absent := strings.CutSuffix(orElse(in.Items, "body"), "?")
	split, err := path.ParseSplit(items)
	if err != nil {
		c.fault(".reconcile.items", err.Error(), `such as "body.data"`)
	}
	l.items, l.absent, l.wrong = split, absent, c.maybePlace(".reconcile.error", in.Error)
	if in.ID != "" {
		l.id = c.choice(".reconcile.id", []string{in.ID}, nil)
	}
	l.kind = c.choice(".reconcile.type", in.Type, nil)
	l.pageID = l.id
	if in.Page != "" {
		l.pageID = c.choice(".reconcile.page_id", []string{in.Page}, nil)
	}
	l.at = c.maybePlace(".reconcile.at", in.At)
	l.body = c.maybePlace(".reconcile.body", in.Body)
	if in.Detail != "" {
		l.detail = c.listURL(".reconcile.detail", in.Detail)
	}
	if in.Again != "" {
		l.again = c.listURL(".reconcile.redeliver", in.Again)
	}
	l.carried = map[string]choice{}
	for _, name := range slices.Sorted(maps.Keys(in.Carried)) {
		l.carried[name] = c.choice(".reconcile."+config.Join("carried", name), []string{in.Carried[name]}, nil)
	}
}
