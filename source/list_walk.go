package source

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"creel/event"
	"creel/path"
)

// Listing is what reading a list came to.
type Listing struct {
	Pages  int
	Items  int // items of the list, whatever they are
	Listed int // events of the span that count, each once
	// Unreadable counts items that are no event of the source, and Why says it of
	// the first.
	Unreadable int
	Why        string
	// Lost are stretches of which the sender may list more than it shows.
	Lost []Span
}

// List reads the events of a span and gives each page to visit: every event
// once, those that do not count left out. An error ends it; what was visited
// before stands.
func (l *Lister) List(ctx context.Context, pace *Pace, span Span, visit func([]Listed) error) (Listing, error) {
	w := &walk{lister: l, pace: pace, span: span, visit: visit, seen: map[event.Key]bool{}}
	for _, list := range l.lists {
		base, err := l.address(list, nil)
		if err != nil {
			return w.result, err
		}
		if err := w.list(ctx, base); err != nil {
			return w.result, err
		}
	}
	return w.result, nil
}

// walk is one reading of a list.
type walk struct {
	lister *Lister
	pace   *Pace
	span   Span
	visit  func([]Listed) error
	seen   map[event.Key]bool
	result Listing

	newest time.Time // of the first item of the list that says when it was
	rises  bool      // the list goes from old to new, whatever was said of it
}

// page is one page of a list.
type page struct {
	answer answer
	doc    *path.Document
	items  []Listed // all of them, in order
	fresh  []Listed // that count and were not seen
	known  bool     // every one was seen before
	old    bool     // every one is older than the span
}

func (w *walk) list(ctx context.Context, base *url.URL) error {
	l := w.lister
	asked := map[string]bool{}
	bounds := w.span // what the parameters say
	w.newest, w.rises = time.Time{}, false
	ask := l.first(base, bounds)
	for number := 1; ; number++ {
		if number > l.maxPages {
			return fmt.Errorf("the list has more than %d pages: look at a shorter span, or raise max_pages", l.maxPages)
		}
		if asked[ask.name()] {
			return fmt.Errorf("the list goes in a circle: page %d is one that was read", number)
		}
		asked[ask.name()] = true
		p, err := w.page(ctx, ask)
		if err != nil {
			return err
		}
		if len(p.fresh) > 0 {
			if err := w.visit(p.fresh); err != nil {
				return err
			}
		}
		w.direction(p)
		if len(p.items) > 0 && p.old && !l.oldest && !w.rises {
			return nil // one old event is none: the whole page has to be
		}
		next, err := w.following(base, ask, p, number, &bounds)
		if err == nil && next == nil && w.says(p) && !bounds.Empty() {
			return l.failed(ask.target, "compare the answer with reconcile.more, reconcile.next and reconcile.next_at: curl it with the token",
				fmt.Sprintf("page %d says that there is more, and gives no way on", number))
		}
		if err != nil || next == nil {
			return err
		}
		ask = *next
	}
}

// direction looks which way the list goes. One that rises, though it is said to
// begin with the newest, has what is looked for behind its old pages.
func (w *walk) direction(p page) {
	for i := range p.items {
		if w.newest.IsZero() {
			w.newest = p.items[i].At
		}
	}
	if n := len(p.items); n > 0 && p.items[n-1].At.After(w.newest) {
		w.rises = true
	}
}

// page asks for one page and reads its items.
func (w *walk) page(ctx context.Context, ask question) (page, error) {
	got, err := w.lister.ask(ctx, w.pace, ask)
	if err != nil {
		return page{}, err
	}
	p := page{answer: got, doc: path.NewDocument(event.Payload{Body: got.body}), known: true, old: true}
	if why := w.wrong(p); why != "" {
		return p, w.lister.failed(ask.target, lookAtURL, "the answer says that it failed: "+why)
	}
	elements, missed, err := p.doc.Each(w.lister.items)
	if err == nil && missed > 0 && !w.lister.absent {
		err = path.ErrMissing
	}
	if err != nil {
		if strings.HasPrefix(strings.TrimSpace(string(got.body[:min(len(got.body), 64)])), "<") {
			return p, w.lister.failed(ask.target, lookAtURL, "the answer is no JSON: it is a page for people. Look at reconcile.url")
		}
		return p, w.lister.failed(ask.target, lookAtURL, fmt.Sprintf("the answer has no list at %s: %v", w.lister.items, err))
	}
	w.result.Pages++
	w.result.Items += len(elements)
	for _, element := range elements {
		one, counts, err := w.lister.item(element)
		if err != nil {
			counts = false
			one.Key = event.Key{Source: w.lister.src.name, ID: event.HashID(element.Raw)}
			if w.result.Unreadable++; w.result.Unreadable == 1 {
				w.result.Why = err.Error()
			}
		}
		p.items = append(p.items, one)
		if one.At.IsZero() || !one.At.Before(w.span.From.Truncate(w.lister.grain())) {
			p.old = false
		} else {
			counts = false
		}
		if w.seen[one.Key] {
			continue
		}
		w.seen[one.Key], p.known = true, false
		if counts && (one.At.IsZero() || one.At.Before(w.span.Until)) {
			p.fresh = append(p.fresh, one)
			w.result.Listed++
		}
	}
	read := &w.pace.read
	read.Pages, read.Listed = w.result.Pages, w.result.Listed
	if n := len(p.items); n > 0 {
		read.At = p.items[n-1].At
	}
	w.pace.tell()
	return p, nil
}

// mostWrong is how much is shown of what an answer says went wrong, in bytes.
const mostWrong = 300

// wrong is what an answer says went wrong, where it says 200 all the same.
func (w *walk) wrong(p page) string {
	if w.lister.wrong.kind == 0 {
		return ""
	}
	at, err := (&view{src: w.lister.src, req: &Request{}, doc: p.doc}).look(w.lister.wrong)
	switch {
	case err != nil || !at.ok, at.text == "", at.text == "[]", at.text == "{}", at.text == "false":
		return ""
	}
	return strings.ToValidUTF8(at.text[:min(len(at.text), mostWrong)], "")
}

// item reads one item of the list.
func (l *Lister) item(element path.Element) (one Listed, counts bool, err error) {
	one.raw = element.Raw
	one.item = path.NewDocument(event.Payload{Body: element.Raw})
	v := &view{src: l.src, req: &Request{}, doc: one.item, raw: element.Raw}
	if l.at.kind != 0 {
		if at, err := v.look(l.at); err == nil && at.ok {
			one.At = l.moment(at.text)
		}
	}
	if len(l.id) > 0 {
		id, ok, err := v.first(l.id, true, true)
		if err != nil || !ok {
			return one, false, fmt.Errorf("an item has no id at %s", l.id)
		}
		one.Key.Source = l.src.name
		one.Key.ID, _ = event.Fold(id)
		one.Type, _, _ = v.first(l.kind, false, false)
		one.Type, _ = event.Fold(one.Type)
		return one, l.counts(one.Type), nil
	}
	brought, err := l.src.Bring(&Request{Method: http.MethodPost, Header: http.Header{}, Body: element.Raw})
	switch {
	case err != nil:
		return one, false, err
	case len(brought.Items) == 0:
		one.Key = event.Key{Source: l.src.name, ID: event.HashID(element.Raw)}
		return one, false, nil // of the other mode
	}
	one.Key, one.Type, one.Exact = brought.Items[0].Key, brought.Items[0].Type, true
	return one, l.counts(one.Type), nil
}

// following is the question for the next page; nil at the end of the list.
func (w *walk) following(base *url.URL, ask question, p page, number int, bounds *Span) (*question, error) {
	l := w.lister
	switch l.next {
	case "link":
		return w.step(ask, p.answer.link)
	case "body":
		at, err := (&view{src: l.src, req: &Request{}, doc: p.doc}).look(l.nextAt)
		if err != nil || at.text == "" || at.text == "false" || w.ended(p) {
			return nil, err
		}
		if l.cursor == "" {
			return w.step(ask, at.text)
		}
		return ask.turn(at.text), nil
	case "last-id":
		if w.ended(p) {
			return nil, nil
		}
		id, err := w.lastID(p)
		if err != nil {
			return nil, err
		}
		return ask.turn(id), nil
	case "page":
		if w.ended(p) {
			return nil, nil
		}
		return ask.turn(strconv.Itoa(number + 1)), nil
	case "time":
		return w.byTime(base, p, bounds), nil
	}
	return nil, nil
}

// says tells whether a page says that there is more behind it.
func (w *walk) says(p page) bool {
	l := w.lister
	if l.more.kind == 0 {
		return false
	}
	at, err := (&view{src: l.src, req: &Request{}, doc: p.doc}).look(l.more)
	return err != nil || at.ok && at.text != "" && at.text != "false" && at.text != "0"
}

// ended tells whether a page is the last that can be asked for.
func (w *walk) ended(p page) bool {
	l := w.lister
	if l.more.kind != 0 {
		// An empty page has no last item that would lead on.
		return !w.says(p) || len(p.items) == 0 && l.next == "last-id"
	}
	if l.next == "body" {
		return false
	}
	return len(p.items) == 0 || len(p.items) < l.pageSize
}

func (w *walk) lastID(p page) (string, error) {
	last := p.items[len(p.items)-1]
	from := w.lister.pageID
	if len(from) == 0 {
		return last.Key.ID, nil
	}
	v := &view{src: w.lister.src, req: &Request{}, doc: last.item}
	id, ok, err := v.first(from, true, false)
	if err != nil || !ok {
		return "", fmt.Errorf("the last item of a page has no %s", from)
	}
	return id, nil
}

// step follows an address that an answer names, on the same host.
func (w *walk) step(ask question, text string) (*question, error) {
	if text == "" {
		return nil, nil
	}
	next, err := ask.target.Parse(text)
	if err != nil {
		return nil, w.lister.failed(ask.target, lookAtURL, "the next page has no usable address")
	}
	if next.Scheme != ask.target.Scheme || !strings.EqualFold(next.Host, ask.target.Host) || next.User != nil {
		return nil, w.lister.failed(ask.target, lookAtURL, "the next page is at another address, "+next.Scheme+"://"+next.Host+", which does not get the token")
	}
	ask.target = next
	return &ask, nil
}

// byTime asks from the time of the last item on, that moment included, because
// more of its second may be behind the page. Where a whole page is of one second
// there is no way past it but to leave it, and to say so.
func (w *walk) byTime(base *url.URL, p page, bounds *Span) *question {
	l := w.lister
	if len(p.items) == 0 || len(p.items) < l.pageSize {
		return nil
	}
	at := p.items[len(p.items)-1].At.Truncate(l.grain())
	stuck := p.known || l.oldest && !at.After(bounds.From.Truncate(l.grain())) || !l.oldest && !at.Before(bounds.Until.Truncate(l.grain()))
	if stuck {
		w.result.Lost = append(w.result.Lost, Span{From: at, Until: at.Add(l.grain())})
	}
	switch {
	case l.oldest && stuck:
		bounds.From = at.Add(l.grain())
	case l.oldest:
		bounds.From = at
	case stuck:
		bounds.Until = at.Add(-l.grain())
	default:
		bounds.Until = at
	}
	if bounds.Empty() {
		return nil
	}
	next := l.first(base, *bounds)
	return &next
}
