package source

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"creel/event"
	"creel/path"
)

const (
	mostListed = 64 << 20 // bytes of one answer
	// listTries is how often one request is made before the list is given up.
	listTries = 6
	// mostListWait is the longest that the sender can make one request wait. Who
	// asks for more is not asked again within it.
	mostListWait = 15 * time.Minute
)

// Pace is how a list is asked in time.
type Pace struct {
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
	Tell  func(Reading) // where it is set it hears how far the reading is
	last  time.Time     // of the last request
	read  Reading
}

// Reading is how far a list is read.
type Reading struct {
	Pages  int       `json:"pages"`
	Listed int       `json:"listed"`
	At     time.Time `json:"at,omitzero"` // of the last item read; zero where the list does not say
	// Again is when a request that failed is made again, and Why how it failed;
	// zero while none waits.
	Again time.Time `json:"again_at,omitzero"`
	Why   string    `json:"why,omitempty"`
}

func (p *Pace) tell() {
	if p.Tell != nil {
		p.Tell(p.read)
	}
}

// NewPace waits by a clock. A nil sleep waits for real.
func NewPace(now func() time.Time, sleep func(context.Context, time.Duration) error) *Pace {
	if sleep == nil {
		sleep = func(ctx context.Context, d time.Duration) error {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-timer.C:
				return nil
			}
		}
	}
	return &Pace{Now: now, Sleep: sleep}
}

// await leaves the distance between two requests that the rate asks for.
func (p *Pace) await(ctx context.Context, every time.Duration) error {
	if wait := every - p.Now().Sub(p.last); !p.last.IsZero() && wait > 0 {
		if err := p.Sleep(ctx, min(wait, every)); err != nil {
			return err
		}
	}
	p.last = p.Now()
	return nil
}

// answer is one answer of the sender.
type answer struct {
	body []byte
	link string
}

// ask makes one request, again where the sender asks for time or has trouble of
// its own.
func (l *Lister) ask(ctx context.Context, pace *Pace, q question) (answer, error) {
	for try := 1; ; try++ {
		if err := pace.await(ctx, l.every); err != nil {
			return answer{}, err
		}
		got, wait, err := l.askOnce(ctx, pace, q)
		if err == nil || wait < 0 || try == listTries || ctx.Err() != nil {
			return got, err
		}
		if wait == 0 {
			wait = time.Second << (try - 1)
		}
		pace.read.Again, pace.read.Why = pace.Now().Add(wait), err.Error()
		pace.tell()
		if err := pace.Sleep(ctx, wait); err != nil {
			return answer{}, err
		}
		pace.read.Again, pace.read.Why = time.Time{}, ""
	}
}

// askOnce returns below 0 for a wait where the same request will not go better.
func (l *Lister) askOnce(ctx context.Context, pace *Pace, q question) (answer, time.Duration, error) {
	req, err := q.request(ctx)
	if err != nil {
		return answer{}, -1, err
	}
	res, err := l.client.Do(req)
	if err != nil {
		return answer{}, 0, l.unreached(q.target, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, mostListed+1))
	switch {
	case err != nil:
		return answer{}, 0, l.unreached(q.target, err)
	case len(body) > mostListed:
		return answer{}, -1, l.failed(q.target, "a smaller reconcile.page_size", fmt.Sprintf("the answer is larger than %d bytes", mostListed))
	case res.StatusCode >= 200 && res.StatusCode <= 299:
		return answer{body: body, link: nextLink(res.Header.Values("Link"))}, 0, nil
	}
	wait := listWait(res.Header, pace.Now())
	refused := l.refused(q.target, res, wait)
	limited := res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusForbidden && wait > 0
	switch {
	case !limited && res.StatusCode != http.StatusRequestTimeout && res.StatusCode < 500:
		wait = -1
	case wait > mostListWait:
		wait = -1
	}
	return answer{}, wait, refused
}

// listWait is how long an answer asks to wait: Retry-After (RFC 9110, section
// 10.2.3); 0 where it does not.
func listWait(header http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// nextLink is the target of rel="next" (RFC 8288); "" where there is none.
func nextLink(lines []string) string {
	for _, link := range strings.Split(strings.Join(lines, ","), ",") {
		target, params, _ := strings.Cut(strings.TrimSpace(link), ">")
		for _, param := range strings.Split(params, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
			if strings.EqualFold(name, "rel") && strings.EqualFold(strings.Trim(value, `"`), "next") {
				return strings.TrimPrefix(target, "<")
			}
		}
	}
	return ""
}

// address renders a URL. What an item puts into it is escaped.
func (l *Lister) address(t template, item *path.Document) (*url.URL, error) {
	v := &view{src: l.src, req: &Request{}, doc: item}
	var b strings.Builder
	for _, p := range t.pieces {
		if p.isLiteral() {
			b.WriteString(p.literal)
			continue
		}
		at, err := v.look(p.place)
		if err != nil || at.text == "" {
			return nil, fmt.Errorf("the URL %s: nothing stands at %s", t.text, p.place.text)
		}
		if p.place.kind == fixed {
			b.WriteString(at.text)
		} else {
			b.WriteString(url.PathEscape(at.text))
		}
	}
	u, err := url.Parse(b.String())
	if err != nil {
		return nil, fmt.Errorf("the URL %s: %w", t.text, err)
	}
	return u, nil
}

// Fetch makes the request that would have carried a listed event.
func (l *Lister) Fetch(ctx context.Context, pace *Pace, one *Listed) (*Request, error) {
	doc := one.item
	if len(l.detail.pieces) > 0 {
		target, err := l.address(l.detail, one.item)
		if err != nil {
			return nil, err
		}
		got, err := l.ask(ctx, pace, question{lister: l, method: http.MethodGet, target: target})
		if err != nil {
			return nil, err
		}
		doc = path.NewDocument(event.Payload{Body: got.body})
	}
	req := &Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}}
	v := &view{src: l.src, req: &Request{}, doc: one.item}
	for name, from := range l.carried {
		if text, ok, err := v.first(from, true, false); err == nil && ok {
			req.Header.Set(name, text)
		}
	}
	raw, err := doc.Body()
	if l.body.kind != 0 && err == nil {
		var value path.Value
		var ok bool
		if value, ok, err = doc.Get(l.body.path); err == nil && !ok {
			err = fmt.Errorf("nothing stands at %s", l.body.text)
		}
		if raw = value.Raw; value.Kind == path.String {
			raw = []byte(value.Text()) // the event as text, in an item that is JSON
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the event %s: %w", one.Key.ID, err)
	}
	req.Body = raw
	return req, nil
}

// Redeliver asks the sender to deliver a listed event again.
func (l *Lister) Redeliver(ctx context.Context, pace *Pace, one *Listed) error {
	target, err := l.address(l.again, one.item)
	if err != nil {
		return err
	}
	_, err = l.ask(ctx, pace, question{lister: l, method: http.MethodPost, target: target})
	return err
}
