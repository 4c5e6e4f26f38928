package examples_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

var errLost = errors.New("the answer is lost")

// front stands between a sender and a receiver. It can lose answers after the
// receiver has done its work, and lead to nobody at all.
type front struct {
	URL string

	mu       sync.Mutex
	receiver *url.URL
	lose     int
	seen     []*http.Request // without their bodies
}

func newFront(t *testing.T) *front {
	f := &front{}
	// Each request has a connection of its own: nothing is repeated unseen.
	proxy := &httputil.ReverseProxy{
		Transport:      &http.Transport{DisableKeepAlives: true},
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(f.take(r.In)) },
		ModifyResponse: func(*http.Response) error { return f.lost() },
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	f.URL = server.URL
	return f
}

// lead says who receives from now on; "" is nobody.
func (f *front) lead(t *testing.T, to string) {
	t.Helper()
	receiver, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.receiver = receiver
}

// loseNext loses the answers of the next n requests.
func (f *front) loseNext(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose = n
}

func (f *front) requests() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*http.Request(nil), f.seen...)
}

func (f *front) take(r *http.Request) *url.URL {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, r)
	return f.receiver
}

func (f *front) lost() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lose == 0 {
		return nil
	}
	f.lose--
	return errLost
}
