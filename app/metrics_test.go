package app_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"creel/admin"
	"creel/app"
	"creel/config"
	"creel/internal/testkit"
)

const (
	meteredSecret = "a secret of more than sixteen bytes"
	metered       = `
listen   = "127.0.0.1:0"
database = %q
[admin]
listen = "127.0.0.1:0"
[retry.brief]
delays = ["20ms", "20ms"]
[[source]]
name    = "shop"
secrets = [%q]
forward = "app"
%s
[destination.app]
url   = %q
retry = "brief"
`
)

// newMetered is a running app with one source and one destination.
func newMetered(t *testing.T, url string) (*app.App, testkit.Sender) {
	t.Helper()
	text := fmt.Sprintf(metered, filepath.Join(t.TempDir(), "creel.db"), meteredSecret, testkit.PlainVerify, url)
	env := func(string) (string, bool) { return "", false }
	cfg, problems := config.Parse("creel.toml", []byte(text), env)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(context.Background(), app.Options{Config: cfg, Env: env, Log: zerolog.Nop(), Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := a.Stop(ctx); err != nil {
			t.Errorf("the stop was not clean: %v", err)
		}
	})
	return a, testkit.Sender{URL: "http://" + a.Listen + "/in/shop", Secret: meteredSecret, Sign: testkit.SignPlain}
}

// scrape asks for the metrics as Prometheus does, and reads them with its own
// parser.
func scrape(t *testing.T, a *app.App) (map[string]*dto.MetricFamily, []byte) {
	t.Helper()
	response, err := http.Get("http://" + a.AdminListen + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %v\n%s", response.Status, err, text)
	}
	if format := expfmt.ResponseFormat(response.Header); format.FormatType() != expfmt.TypeTextPlain {
		t.Errorf("the format is %q", format)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return families, text
}

// series lists the samples of a scrape without their values.
func series(text []byte) []string {
	var names []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			names = append(names, line[:strings.LastIndexByte(line, ' ')])
		}
	}
	slices.Sort(names)
	return names
}

// value finds the value of one sample as it is written.
func value(text []byte, sample string) string {
	for line := range strings.Lines(string(text)) {
		if found, ok := strings.CutPrefix(line, sample+" "); ok {
			return strings.TrimSuffix(found, "\n")
		}
	}
	return "absent"
}

// TestGateO7Metrics drives every kind of request and delivery through the app:
// the scrape passes the linter of Prometheus, and says what happened.
func TestGateO7Metrics(t *testing.T) {
	t.Parallel()
	site := testkit.NewDestination(t)
	site.Script(testkit.Answer{Status: 500}, testkit.Answer{Status: 204}, testkit.Answer{Status: 422})
	a, sender := newMetered(t, site.URL)
	send := func(body string) {
		t.Helper()
		if status, answer := sender.Send(t, "", []byte(body)); status != http.StatusOK {
			t.Fatalf("answered %d %q", status, answer)
		}
	}
	settled := func(sample, want string) {
		t.Helper()
		last := ""
		if !testkit.Await(10*time.Second, func() bool {
			_, text := scrape(t, a)
			last = value(text, sample)
			return last == want
		}) {
			t.Fatalf("%s is %s, want %s", sample, last, want)
		}
	}
	send(`{"id":"e1","type":"order.paid"}`) // 500, then 204
	settled(`creel_deliveries_total{destination="app",result="sent"}`, "1")
	send(`{"id":"e2","type":"order.paid"}`) // 422
	settled(`creel_outbox_deliveries{destination="app",state="dead"}`, "1")
	send(`{"id":"e1","type":"order.paid"}`)
	send(`{"id":"e1","type":"order.paid","other":true}`)
	wrong := sender
	wrong.Secret = "another secret of sixteen bytes"
	wrong.Send(t, "", []byte(`{"id":"e3","type":"order.paid"}`))
	sender.Send(t, "", make([]byte, 1<<20+1))
	wrong.URL = "http://" + a.Listen + "/in/nobody"
	wrong.Send(t, "", []byte(`{}`))

	families, text := scrape(t, a)
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, f := range admin.Families() {
		if families[f.Name] == nil && !strings.HasPrefix(f.Name, "creel_reconciliation") {
			t.Errorf("%s is in the table and not in the scrape", f.Name)
		}
		delete(families, f.Name)
	}
	for name := range families {
		t.Errorf("%s is in the scrape and not in the table", name)
	}
	for sample, want := range map[string]string{
		`creel_receipts_total{source="shop"}`:                                                  "4",
		`creel_events_total{source="shop",result="new"}`:                                       "2",
		`creel_events_total{source="shop",result="duplicate"}`:                                 "1",
		`creel_events_total{source="shop",result="conflict"}`:                                  "1",
		`creel_rejects_total{source="shop",cause="wrong_signature"}`:                           "1",
		`creel_rejects_total{source="shop",cause="too_old"}`:                                   "0",
		`creel_rejects_total{source="shop",cause="too_large"}`:                                 "1",
		`creel_answers_total{source="(unknown)",result="unknown",class="4xx"}`:                 "1",
		`creel_acknowledgement_duration_seconds_count{source="shop"}`:                          "4",
		`creel_events_processed_total{result="done"}`:                                          "2",
		`creel_processing_duration_seconds_count`:                                              "2",
		`creel_delivery_attempts_total{destination="app",attempt="first",outcome="transient"}`: "1",
		`creel_delivery_attempts_total{destination="app",attempt="again",outcome="ok"}`:        "1",
		`creel_delivery_attempts_total{destination="app",attempt="first",outcome="permanent"}`: "1",
		`creel_delivery_latency_seconds_count{destination="app"}`:                              "1",
		`creel_delivery_attempt_duration_seconds_count{destination="app"}`:                     "3",
		`creel_deliveries_total{destination="app",result="dead"}`:                              "1",
		`creel_outbox_deliveries{destination="(removed)",state="dead"}`:                        "0",
		`creel_destination_state{destination="app",state="enabled"}`:                           "1",
		`creel_destination_state{destination="app",state="held"}`:                              "0",
		`creel_inbox_events{state="pending"}`:                                                  "0",
		`creel_event_overdue_seconds`:                                                          "0",
		`creel_ready{check="store"}`:                                                           "1",
		`creel_signal{signal="wal_size",subject=""}`:                                           "0",
		`creel_open_incidents{cause="dead_delivery"}`:                                          "1",
	} {
		if got := value(text, sample); got != want {
			t.Errorf("%s is %s, want %s", sample, got, want)
		}
	}
}

// TestGateO7SeriesAreOfTheConfiguration sends ten thousand requests whose paths,
// ids, types and methods are all different: there is not one series more.
func TestGateO7SeriesAreOfTheConfiguration(t *testing.T) {
	t.Parallel()
	site := testkit.NewDestination(t)
	a, sender := newMetered(t, site.URL)
	sender.Send(t, "", []byte(`{"id":"first","type":"order.paid"}`))
	_, before := scrape(t, a)
	const workers, each = 8, 1250
	var all sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers}}
	t.Cleanup(client.CloseIdleConnections)
	for range workers {
		all.Go(func() {
			for i := range each {
				word := fmt.Sprintf("w%x", rand.Uint64())
				request, _ := http.NewRequest(http.MethodPost, "http://"+a.Listen+"/in/"+word, strings.NewReader(word))
				switch i % 10 {
				case 0:
					request = sender.Request(t, "", []byte(fmt.Sprintf(`{"id":%q,"type":%q}`, word, word)), time.Now())
				case 1:
					request.URL.Path, request.Method = "/"+word, "M"+strings.ToUpper(word)
				case 2:
					request.URL.Path = "/in/shop"
					request.Header.Set("X-Signature", word)
				}
				response, err := client.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		})
	}
	all.Wait()
	_, after := scrape(t, a)
	was, is := series(before), series(after)
	is = slices.DeleteFunc(is, func(s string) bool { return slices.Contains(was, s) })
	if len(is) > 0 {
		t.Errorf("%d series more, the first is %s", len(is), is[0])
	}
	if got := value(after, `creel_answers_total{source="(unknown)",result="unknown",class="4xx"}`); got != "8000" {
		t.Errorf("%s unknown paths were counted, want 8000", got)
	}
}
