package app_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/app"
	"creel/config"
	"creel/internal/testkit"
)

// BenchmarkScrape is the scrape's part of P12: half a million dead events and
// as many dead deliveries, after the counts were taken once.
func BenchmarkScrape(b *testing.B) {
	n := 500_000
	if testing.Short() {
		n = 5_000
	}
	database := filepath.Join(b.TempDir(), "creel.db")
	start := func() *app.App {
		env := func(string) (string, bool) { return "", false }
		cfg, problems := config.Parse("creel.toml", []byte(fmt.Sprintf(metered, database, meteredSecret, testkit.PlainVerify, "http://127.0.0.1:1")), env)
		if err := problems.Err(); err != nil {
			b.Fatal(err)
		}
		a, err := app.New(context.Background(), app.Options{Config: cfg, Env: env, Log: zerolog.Nop()})
		if err != nil {
			b.Fatal(err)
		}
		if err := a.Start(context.Background()); err != nil {
			b.Fatal(err)
		}
		return a
	}
	stop := func(a *app.App) {
		if err := a.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	}
	stop(start()) // makes the schema
	fill(b, database, n)
	a := start()
	defer stop(a)
	get := func() time.Duration {
		began := time.Now()
		response, err := http.Get("http://" + a.AdminListen + "/metrics")
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		took := time.Since(began)
		if closing := response.Body.Close(); err != nil || closing != nil {
			b.Fatal(err, closing)
		}
		if counted := value(text, `creel_outbox_deliveries{destination="app",state="dead"}`); counted != "0" && counted != "absent" { // these rows name no failure
			b.Fatalf("%s of %d deliveries are counted as dead", counted, n)
		}
		return took
	}
	var took []time.Duration
	for b.Loop() {
		took = append(took, get())
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

func fill(b *testing.B, database string, n int) {
	db, err := sql.Open("sqlite", database)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) `
	for _, text := range []string{
		numbers + `INSERT INTO event (source, account, id, state, attempts, received_at, finished_at, type, object, version, part, content)
			SELECT 'shop', '', 'e' || i, 'dead', 1, i, i, 't', '', '', '', zeroblob(16) FROM n`,
		numbers + `INSERT INTO delivery (event, rule, key, destination, state, created_at, finished_at)
			SELECT i, 'r', 'k' || i, 'app', 'dead', i, i FROM n`,
	} {
		if _, err := db.Exec(text, n); err != nil {
			b.Fatal(err)
		}
	}
}
