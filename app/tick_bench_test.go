package app

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
)

// tickFile is a database that BenchmarkTick looks at; an empty one otherwise.
var tickFile = flag.String("tick-file", "", "database for BenchmarkTick")

// BenchmarkTick is the signals' part of P12: what a look at all of them takes,
// however much is in the database.
func BenchmarkTick(b *testing.B) {
	database := *tickFile
	if database == "" {
		database = filepath.Join(b.TempDir(), "creel.db")
	}
	text := fmt.Sprintf("listen = \"127.0.0.1:0\"\ndatabase = %q\n", database)
	for i := range 6 {
		text += fmt.Sprintf("[[source]]\nname = \"source%d\"\nprovider = \"stripe\"\nsecrets = [\"whsec_0123456789abcdef0123456789abcdef\"]\nforward = \"app%d\"\n", i, i%3)
	}
	for i := range 3 {
		text += fmt.Sprintf("[destination.app%d]\nurl = \"http://127.0.0.1:9\"\nsecret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\n", i)
	}
	env := func(string) (string, bool) { return "", false }
	cfg, problems := config.Parse("creel.toml", []byte(text), env)
	if err := problems.Err(); err != nil {
		b.Fatal(err)
	}
	a, err := New(context.Background(), Options{Config: cfg, Env: env, Log: zerolog.Nop()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := a.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	}()
	b.Run("a look at the signals", func(b *testing.B) {
		var took []time.Duration
		for now := time.Now(); b.Loop(); now = now.Add(30 * time.Second) {
			start := time.Now()
			if err := a.signals.Step(context.Background(), now); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
		b.ReportMetric(0, "ns/op")
	})
}
