package app_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/app"
	"creel/config"
	"creel/internal/testkit"
)

// orderly is a configuration that keeps the state of orders.
const orderly = `
listen   = "127.0.0.1:0"
database = %q
[admin]
listen = "127.0.0.1:0"
[[source]]
name    = "shop"
secrets = ["a secret of more than sixteen bytes"]
%s
  object = "body.order"
[[rule]]
name  = "orders"
match = { source = "shop" }
  [rule.fetch]
  url   = "%s/orders/{object}"
  token = %q
  [rule.state]
  to = "{body.status}"
`

// TestGateA6ThroughTheApp sends events without a version to the whole app: the
// state is what the owner of the orders says, asked with the token of the
// configuration that is in force.
func TestGateA6ThroughTheApp(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	tokens := map[string]string{}
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		tokens[r.URL.Path] = r.Header.Get("Authorization")
		fmt.Fprint(w, `{"status":"shipped"}`)
	}))
	t.Cleanup(shop.Close)
	database := filepath.Join(t.TempDir(), "creel.db")
	env := func(name string) (string, bool) {
		return map[string]string{"FIRST": "tok_first_0001", "SECOND": "tok_second_0002"}[name], name == "FIRST" || name == "SECOND"
	}
	load := func(token string) (*config.Config, config.Problems) {
		return config.Parse("creel.toml", []byte(fmt.Sprintf(orderly, database, testkit.PlainVerify, shop.URL, token)), env)
	}
	cfg, problems := load("env:FIRST")
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(context.Background(), app.Options{Config: cfg, Env: env, Log: zerolog.Nop(),
		Load: func() (*config.Config, *config.File, config.Problems) {
			cfg, problems := load("env:SECOND")
			cfg.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
			return cfg, nil, problems
		}})
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
	sender := testkit.Sender{URL: "http://" + a.Listen + "/in/shop", Secret: "a secret of more than sixteen bytes", Sign: testkit.SignPlain}
	send := func(order string) {
		t.Helper()
		body := fmt.Sprintf(`{"id":"evt_%s","type":"order.changed","order":%q,"status":"paid"}`, order, order)
		if status, answer := sender.Send(t, "", []byte(body)); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
		testkit.Poll(t, 20*time.Second, order+" to be shipped", func() bool { return stateIn(t, database, order) == "shipped" })
	}
	send("one")
	if _, err := a.Reload(context.Background()); err != nil {
		t.Fatal(err)
	}
	send("two")
	mu.Lock()
	defer mu.Unlock()
	if tokens["/orders/one"] != "Bearer tok_first_0001" || tokens["/orders/two"] != "Bearer tok_second_0002" {
		t.Errorf("asked with %v", tokens)
	}
}

// stateIn is the state of an order as another program reads it.
func stateIn(t *testing.T, database, order string) (state string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+database+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(`SELECT coalesce(max(state), '') FROM v_state WHERE object = ?`, "shop//"+order).Scan(&state); err != nil {
		t.Fatal(err)
	}
	return state
}

// What is wrong with a fetch is told once, by its key.
func TestAFetchIsJudgedWithTheRest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, token, at string }{
		{"https://{body.host}", "env:TOKEN", "rule[0].fetch.url"},
		{"https://u:p@api.example.com", "env:TOKEN", "rule[0].fetch.url"},
		{"https://api.example.com", "env:MISSING", "rule[0].fetch.token"},
	} {
		env := func(name string) (string, bool) { return "tok_0123456789", name == "TOKEN" }
		text := fmt.Sprintf(orderly, "creel.db", testkit.PlainVerify, c.url, c.token)
		cfg, found := config.Parse("creel.toml", []byte(text), env)
		if err := found.Resolved().Err(); err != nil {
			t.Fatal(err)
		}
		_, problems := app.Judge(cfg, nil, nil, app.Meaning{Env: env, Clock: time.Now})
		var faults []string
		for _, p := range problems.Faults() {
			faults = append(faults, p.Path)
		}
		if len(faults) != 1 || faults[0] != c.at {
			t.Errorf("%s %s: %s", c.url, c.token, strings.Join(faults, ", "))
		}
	}
}
