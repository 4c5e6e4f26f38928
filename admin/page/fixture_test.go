package page

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
)

const goodPassword = "correct horse battery staple"

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// stand is a page on a real listener, over events that a test puts there.
type stand struct {
	web     *httptest.Server
	page    *Page
	mu      sync.Mutex
	now     time.Time
	asked   atomic.Int64 // how often the password was compared
	acted   []event.Action
	planned []event.Action
	carried []event.Action
	letters []Letter
	groups  []event.Failure
	lone    map[int64]event.Event
	lanes   []event.ParkedLane
	refuses bool // what is asked for was done already

	deliveries []event.Delivery

	outgoing map[int64]event.Outgoing
	health   map[string]event.DestinationHealth
	event    Detail
	same     []event.Event     // of its object; none is itself alone
	places   []Place           // of its body
	bodies   map[string][]byte // what is kept of others, by their ids
}

// shown is what a stand shows; whatever it does not know panics, which is an
// answer too.
type shown struct {
	Data
	*stand
}

func (s shown) Signals() ([]event.Signal, time.Time) {
	return []event.Signal{{Name: event.SignalDead, Value: 3, Threshold: 5, Unit: "events"}}, began.Add(-7 * time.Second)
}
func (s shown) Names() ([]string, []string) { return []string{"shop"}, []string{"app"} }
func (s shown) Failures(context.Context, Ask) (Failures, error) {
	return Failures{List: s.groups}, nil
}
func (s shown) Lane(_ context.Context, lane string) (list []event.ParkedLane, _ error) {
	for _, one := range s.lanes {
		if one.Lane == lane {
			list = append(list, one)
		}
	}
	return list, nil
}
func (s shown) Lone(_ context.Context, groups []event.Failure) (map[int64]event.Event, error) {
	found := map[int64]event.Event{}
	for _, g := range groups {
		if e, is := s.lone[g.ID]; is {
			found[g.ID] = e
		}
	}
	return found, nil
}
func (s shown) Letters(context.Context, Ask) (Letters, error) { return Letters{List: s.letters}, nil }
func (s shown) Event(context.Context, event.Key) (Detail, error) {
	return s.event, nil
}
func (s shown) Body(_ context.Context, key event.Key) ([]byte, string, error) {
	if body, other := s.bodies[key.ID]; other {
		return body, "application/json", nil
	}
	return s.event.Payload.Body, "text/html", nil
}
func (s shown) Places(*event.Work) []Place { return s.places }
func (s shown) Kept(_ context.Context, seq int64) (bool, error) {
	for _, e := range s.same {
		if e.Seq == seq {
			return len(s.bodies[e.Key.ID]) > 0, nil
		}
	}
	return false, event.ErrNotFound
}
func (s shown) Events(_ context.Context, ask Ask) (Events, error) {
	if s.same == nil {
		return Events{List: []event.Event{s.event.Event}}, nil
	}
	var found Events
	for _, e := range s.same { // newest first
		if before := number(ask.Cursor); (before == 0 || e.Seq < before) && len(found.List) < ask.Limit {
			found.List = append(found.List, e)
		}
	}
	return found, nil
}
func (s shown) Outgoing(context.Context, []event.Event) (map[int64]event.Outgoing, error) {
	return s.outgoing, nil
}
func (s shown) Deliveries(context.Context, DeliveryFilter, event.Page) (Deliveries, error) {
	return Deliveries{List: s.deliveries}, nil
}
func (s shown) Duplicates(context.Context, string, int) ([]event.Event, error) {
	return []event.Event{s.event.Event}, nil
}
func (s shown) Conflicts(context.Context, event.Page) ([]Conflicted, error) {
	return []Conflicted{{Event: s.event.Event, Conflicts: 1}}, nil
}
func (s shown) ObjectState(context.Context, string) (event.ObjectState, error) {
	return event.ObjectState{}, event.ErrNotFound
}
func (s shown) ObjectHistory(context.Context, string, event.Page) ([]event.Transition, error) {
	return nil, nil
}
func (s shown) Health(context.Context) (map[string]event.DestinationHealth, error) {
	return s.health, nil
}
func (s shown) Failure(_ context.Context, id int64) (event.Failure, error) {
	return event.Failure{ID: id, Kind: event.FailedDelivery, Destination: "app", Dead: 2}, nil
}
func (s shown) Actions(context.Context, event.Page) ([]event.Action, error) {
	return nil, errors.New("disk I/O error of creel.db")
}

// done is what a stand does: it keeps what it was asked.
type done struct {
	Operator
	*stand
}

func (d done) Act(_ context.Context, a event.Action) (event.Action, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.ID, a.Selected, a.Done = int64(len(d.acted)+1), 1, 1
	if d.refuses {
		a.Done, a.Refused = 0, 1
	}
	d.acted = append(d.acted, a)
	return a, nil
}

func (d done) Plan(_ context.Context, a event.Action) (Plan, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.planned = append(d.planned, a)
	return Plan{ID: "p1", Action: a}, nil
}

func (d done) FindPlan(id string) (Plan, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id != "p1" || len(d.planned) == 0 {
		return Plan{}, event.ErrNotFound
	}
	return Plan{ID: id, Action: d.planned[len(d.planned)-1]}, nil
}

func (d done) Carry(_ context.Context, id string, a event.Action) (event.Action, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.carried = append(d.carried, a)
	a.ID = 1
	return a, nil
}

func newStand(t *testing.T, public string) *stand {
	t.Helper()
	s := &stand{now: began}
	clock := func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.now
	}
	page, err := New(Options{PublicURL: public, Listen: "127.0.0.1:8081", Clock: clock, Log: zerolog.Nop(),
		Data: shown{stand: s}, Operator: done{stand: s},
		Password: func(given string) bool { s.asked.Add(1); return given == goodPassword }})
	if err != nil {
		t.Fatal(err)
	}
	s.page = page
	s.web = httptest.NewServer(page.Front(page))
	t.Cleanup(s.web.Close)
	return s
}

func (s *stand) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// browser is one that keeps its cookies and follows nothing by itself.
type browser struct {
	*http.Client
	stand *stand
}

func (s *stand) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{stand: s, Client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// do asks for something; header has names and values in turn.
func (b *browser) do(t *testing.T, method, path string, form url.Values, header ...string) (*http.Response, string) {
	t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(t.Context(), method, b.stand.web.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	res, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

func (b *browser) get(t *testing.T, path string, header ...string) (*http.Response, string) {
	t.Helper()
	return b.do(t, http.MethodGet, path, nil, header...)
}

func (b *browser) login(t *testing.T) {
	t.Helper()
	res, _ := b.do(t, http.MethodPost, "/login", url.Values{"name": {"ana"}, "password": {goodPassword}, "to": {"/"}})
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("login: %s", res.Status)
	}
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// token is what the forms of this session carry.
func (b *browser) token(t *testing.T) string {
	t.Helper()
	_, text := b.get(t, "/")
	found := tokenField.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no token in %s", text)
	}
	return found[1]
}

func (b *browser) session(t *testing.T) string {
	t.Helper()
	at, err := url.Parse(b.stand.web.URL + b.stand.page.prefix + "/")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range b.Jar.Cookies(at) {
		if strings.Contains(c.Name, "creel_session") {
			return c.Value
		}
	}
	return ""
}
