package deliver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"creel/config"
)

const fetchToken = "tok_5f0c1d2e3b4a"

// fetching makes a fetcher of a template on a server.
func fetching(t testing.TB, cfg config.Fetch) *Fetcher {
	t.Helper()
	env := func(name string) (string, bool) { return fetchToken, name == "API_TOKEN" }
	f, problems := NewFetcher(cfg, "rule[0].fetch", Options{Env: env, Clock: time.Now, Version: "test"})
	if faults := problems.Faults(); len(faults) > 0 {
		t.Fatalf("compile: %v", faults)
	}
	t.Cleanup(f.Close)
	return f
}

func owner(t testing.TB, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server
}

func orders(server *httptest.Server) config.Fetch {
	return config.Fetch{URL: server.URL + "/orders/{object}?expand=lines&key=literal-key-1", Token: config.NewSecret("env:API_TOKEN")}
}

// failedFetch fetches an object that can not be had.
func failedFetch(t *testing.T, f *Fetcher, target string) *FetchError {
	t.Helper()
	body, err := f.Fetch(t.Context(), target)
	var failure *FetchError
	if !errors.As(err, &failure) {
		t.Fatalf("got %q, %v", body, err)
	}
	for _, hidden := range []string{fetchToken, "literal-key-1", "secret-order"} {
		if strings.Contains(failure.Error(), hidden) {
			t.Errorf("%q is shown: %s", hidden, failure)
		}
	}
	return failure
}

func TestFetchAsksOnceForJSON(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := owner(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		for name, want := range map[string]string{"Accept": "application/json", "Authorization": "Bearer " + fetchToken,
			"X-Tenant": "7", "User-Agent": "Creel/test", "Accept-Encoding": ""} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if r.Method != http.MethodGet || r.RequestURI != "/orders/o%2F1?expand=lines&key=literal-key-1" {
			t.Errorf("asked %s %s", r.Method, r.RequestURI)
		}
		fmt.Fprint(w, `{"id":"o/1","status":"shipped"}`)
	})
	cfg := orders(server)
	cfg.Headers = map[string]config.Secret{"x-tenant": config.NewSecret("7")}
	body, err := fetching(t, cfg).Fetch(t.Context(), server.URL+"/orders/o%2F1?expand=lines&key=literal-key-1")
	if err != nil || string(body) != `{"id":"o/1","status":"shipped"}` {
		t.Errorf("got %q, %v", body, err)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestFetchClassifiesStatuses(t *testing.T) {
	t.Parallel()
	server := owner(t, func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Query().Get("status"))
		w.Header().Set("Location", "/elsewhere/secret-order?t="+fetchToken+"#"+fetchToken)
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(status)
		fmt.Fprintf(w, "you sent %s", r.Header.Get("Authorization"))
	})
	f := fetching(t, orders(server))
	for _, c := range []struct {
		status    int
		permanent bool
		says      string
	}{
		{301, true, "/elsewhere/…?…, which is not followed"}, {302, true, "not followed"}, {304, true, "304 Not Modified"}, {307, true, "not followed"},
		{400, true, "400"}, {401, true, "look at the token"}, {403, true, "look at the token"}, {404, true, "no such object"},
		{408, false, "408"}, {409, true, "409"}, {410, true, "no such object"}, {422, true, "422"}, {425, false, "425"}, {429, false, "429"},
		{500, false, "500"}, {503, false, "503"}, {599, false, "599"}, {600, false, "600"},
	} {
		got := failedFetch(t, f, server.URL+"/orders/secret-order?status="+strconv.Itoa(c.status))
		if got.Status != c.status || got.Permanent != c.permanent || !strings.Contains(got.Reason, c.says) {
			t.Errorf("%d: permanent %t, %s", c.status, got.Permanent, got.Reason)
		}
		if want := 90 * time.Second; got.RetryAfter != want && !c.permanent || got.RetryAfter != 0 && c.permanent {
			t.Errorf("%d: Retry-After %s", c.status, got.RetryAfter)
		}
		if !strings.Contains(got.Reason, "/orders/{object}?…") {
			t.Errorf("%d does not say what was asked for: %s", c.status, got.Reason)
		}
	}
}

func TestFetchRetryAfterHasACap(t *testing.T) {
	t.Parallel()
	server := owner(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "9999999999")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if got := failedFetch(t, fetching(t, orders(server)), server.URL+"/orders/1"); got.RetryAfter != MaxFetchRetryAfter {
		t.Errorf("it may ask for %s", got.RetryAfter)
	}
}

func TestFetchTakesOneBoundedDocument(t *testing.T) {
	t.Parallel()
	large := `"` + strings.Repeat("x", mostFetched-2) + `"`
	for name, c := range map[string]struct {
		answer          string
		good, permanent bool
	}{
		"object":        {answer: `{"a":1}`, good: true},
		"just fits":     {answer: large, good: true},
		"one too many":  {answer: large + " ", permanent: true},
		"empty":         {},
		"two documents": {answer: `{"a":1}{"a":2}`},
		"cut":           {answer: `{"a":`},
		"a page":        {answer: "<html>maintenance</html>"},
	} {
		server := owner(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.answer) })
		f := fetching(t, orders(server))
		if c.good {
			if body, err := f.Fetch(t.Context(), server.URL+"/orders/1"); err != nil || string(body) != c.answer {
				t.Errorf("%s: %d bytes, %v", name, len(body), err)
			}
			continue
		}
		if got := failedFetch(t, f, server.URL+"/orders/1"); got.Permanent != c.permanent {
			t.Errorf("%s: permanent %t, %s", name, got.Permanent, got.Reason)
		}
	}
}

// A compressed answer is not asked for, and not unpacked where it comes.
func TestFetchUnpacksNothing(t *testing.T) {
	t.Parallel()
	server := owner(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(w, "\x1f\x8b\x08\x00")
	})
	if got := failedFetch(t, fetching(t, orders(server)), server.URL+"/orders/1"); !strings.Contains(got.Reason, "not JSON") {
		t.Error(got)
	}
}

func TestFetchFailuresOfTheWayAreTransient(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	breaks := owner(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	short := owner(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, `{"a":1}`)
	})
	held := make(chan struct{})
	slow := owner(t, func(w http.ResponseWriter, _ *http.Request) { <-held })
	trickles := owner(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"a":`)
		w.(http.Flusher).Flush()
		<-held
	})
	t.Cleanup(func() { close(held) }) // before the servers wait for their requests
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	nowhere := &httptest.Server{URL: "http://nowhere.invalid"}
	for _, c := range []struct {
		server *httptest.Server
		says   string
	}{
		{gone, "refused the connection"}, {breaks, "closed the connection"}, {short, "closed the connection"},
		{slow, "no whole answer within 50ms"}, {trickles, "no whole answer within 50ms"}, {secure, "TLS: "}, {nowhere, "nowhere.invalid was not found"},
	} {
		cfg := orders(c.server)
		if c.server == slow || c.server == trickles {
			cfg.Timeout = config.Duration(50 * time.Millisecond)
		}
		got := failedFetch(t, fetching(t, cfg), c.server.URL+"/orders/secret-order")
		if got.Permanent || got.Status != 0 || !strings.Contains(got.Reason, c.says) {
			t.Errorf("want %q: %+v", c.says, got)
		}
	}
}

func TestFetchIsInterruptedByAStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := owner(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := fetching(t, orders(server)).Fetch(ctx, server.URL+"/orders/1")
	var failure *FetchError
	if !errors.Is(err, context.Canceled) || errors.As(err, &failure) {
		t.Errorf("got %v", err)
	}
}

// Whatever an event holds, the token goes to the address of the configuration.
func TestFetchKeepsToItsAddress(t *testing.T) {
	t.Parallel()
	other := owner(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked of another", r.RequestURI) })
	server := owner(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked", r.RequestURI) })
	f := fetching(t, orders(server))
	for _, target := range []string{
		other.URL + "/orders/1", "http://user@" + f.host + "/orders/1", "https://" + f.host + "/orders/1", server.URL + "0/orders/1",
		server.URL + "/orders/1#x", "mailto:me@example.com", "/orders/1", "", server.URL + "/orders/\x00secret-order", "http://[::1%25x/",
	} {
		if got := failedFetch(t, f, target); !got.Permanent {
			t.Errorf("%s: %+v", target, got)
		}
	}
}

func TestNewFetcherReportsEveryProblem(t *testing.T) {
	t.Parallel()
	token, missing := config.NewSecret("env:API_TOKEN"), config.NewSecret("env:MISSING")
	for name, c := range map[string]struct {
		cfg  config.Fetch
		path string // "" is none
		says string
	}{
		"good":              {cfg: config.Fetch{URL: "https://api.example.com/v1/{object}", Token: token}},
		"port and query":    {cfg: config.Fetch{URL: "http://127.0.0.1:9/v1?id={object}"}},
		"slash at once":     {cfg: config.Fetch{URL: "https://api.example.com/{body.path}"}},
		"no url":            {config.Fetch{}, "url", "has no url"},
		"no template":       {config.Fetch{URL: "https://api.example.com/{nope}"}, "url", "{nope}"},
		"host of the event": {config.Fetch{URL: "https://{body.host}/v1"}, "url", "same for every event"},
		"part of the host":  {config.Fetch{URL: "https://{account}.example.com/v1"}, "url", "same for every event"},
		"end of the host":   {config.Fetch{URL: "https://api.example.com{body.x}/v1"}, "url", "same for every event"},
		"port of the event": {config.Fetch{URL: "https://api.example.com:{body.x}/v1"}, "url", ""},
		"whole of it":       {config.Fetch{URL: "{body.url}"}, "url", ""},
		"scheme of it":      {config.Fetch{URL: "{body.s}://api.example.com/"}, "url", ""},
		"other scheme":      {config.Fetch{URL: "file:///etc/{object}"}, "url", "http"},
		"user":              {config.Fetch{URL: "https://u:p@api.example.com/{object}"}, "url", "user"},
		"port":              {config.Fetch{URL: "https://api.example.com:99999/{object}"}, "url", "port"},
		"fragment":          {config.Fetch{URL: "https://api.example.com/{object}#x"}, "url", "#"},
		"token missing":     {config.Fetch{URL: "https://api.example.com/{object}", Token: missing}, "token", "MISSING"},
		"token twice": {config.Fetch{URL: "https://api.example.com/{object}", Token: token,
			Headers: map[string]config.Secret{"authorization": token}}, "token", "Authorization"},
		"header missing": {config.Fetch{URL: "https://api.example.com/{object}", Headers: map[string]config.Secret{"X-Key": missing}}, "headers.X-Key", "MISSING"},
		"line end":       {config.Fetch{URL: "https://api.example.com/{object}", Headers: map[string]config.Secret{"X-Key": config.NewSecret("a\nb")}}, "headers.X-Key", "line end"},
		"no header":      {config.Fetch{URL: "https://api.example.com/{object}", Headers: map[string]config.Secret{"a b": token}}, `headers."a b"`, "not the name"},
		"connection":     {config.Fetch{URL: "https://api.example.com/{object}", Headers: map[string]config.Secret{"Connection": token}}, "headers.Connection", "connection"},
		"too long":       {config.Fetch{URL: "https://api.example.com/{object}", Timeout: config.Duration(48 * time.Hour)}, "timeout", "over"},
	} {
		env := func(name string) (string, bool) { return fetchToken, name == "API_TOKEN" }
		f, problems := NewFetcher(c.cfg, "rule[0].fetch", Options{Env: env, Clock: time.Now})
		faults := problems.Faults()
		if (f == nil) != (c.path != "") || (len(faults) == 0) != (c.path == "") {
			t.Errorf("%s: %v", name, faults)
			continue
		}
		if c.path == "" {
			continue
		}
		if got := faults[0]; got.Path != "rule[0].fetch."+c.path || !strings.Contains(got.Message+got.Hint, c.says) {
			t.Errorf("%s: %v", name, got)
		}
	}
	_, problems := NewFetcher(config.Fetch{URL: "http://api.example.com/{object}"}, "rule[0].fetch", Options{Env: noEnv, Clock: time.Now})
	if len(problems.Warnings()) != 1 {
		t.Errorf("an unencrypted way is worth a warning: %v", problems)
	}
}
