package config

import (
	"path/filepath"
	"testing"
	"time"
)

func TestAmountsAreNumbersOrExpressions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Expression{
		"amount = 100":               "100",
		"amount = -1":                "-1",
		`amount = "body.amount * 2"`: "body.amount * 2",
	} {
		var into Grant
		if problems := DecodeStrict([]byte(text), &into); len(problems) > 0 || into.Amount != want {
			t.Errorf("%s: %q %v", text, into.Amount, problems)
		}
	}
	for _, text := range []string{"amount = 1.5", "amount = true", "amount = [1]", "amount = { a = 1 }"} {
		var into Grant
		if problems := DecodeStrict([]byte(text), &into); len(problems) != 1 || problems[0].Path != "amount" || problems[0].Hint == "" {
			t.Errorf("%s: %v", text, problems)
		}
	}
}

func TestTablesOfARuleHaveTheirDefaults(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cfg, problems := Parse(filepath.Join(folder, "creel.toml"), []byte(`
[sql]
migrations = "tables"
[[source]]
name     = "s"
provider = "stripe"
secrets  = ["env:STRIPE"]
[[rule]]
name = "r"
[rule.fetch]
url = "https://api.example.com/{object}"
[rule.state]
to = "{body.status}"
`), testEnvironment())
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	r := cfg.Rules[0]
	if r.Fetch.Into != "body" || time.Duration(r.Fetch.Timeout) != 5*time.Second || r.Fetch.Always || r.State.From != nil {
		t.Errorf("%+v %+v", r.Fetch, r.State)
	}
	if cfg.SQL.Migrations != filepath.Join(folder, "tables") || time.Duration(cfg.SQL.Timeout) != 2*time.Second {
		t.Errorf("%+v", cfg.SQL)
	}
	if cfg.Sources[0].Process != "queue" || cfg.Worker.Slow != 8 {
		t.Errorf("%q %d", cfg.Sources[0].Process, cfg.Worker.Slow)
	}
}
