package app

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/source"
)

// Of two who hand over a secret while one is waited for, the first is taken;
// nobody is, once the waiting is over or where it can not be kept.
func TestPairingTakesOne(t *testing.T) {
	t.Parallel()
	src, problems := source.Compile(config.Source{Name: "asana", AwaitSecret: true, Verify: &config.Scheme{
		Auth: "hmac-sha256", Signature: config.StringList{"header.X-Hook-Signature"}, ID: config.StringList{"body.id"},
		Pairing: &config.Pairing{Secret: "header.X-Hook-Secret"},
	}}, "source[0]", func(string) (string, bool) { return "", false })
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "secret")
	a := &App{opt: Options{Log: zerolog.Nop()}}
	a.snapshot.Store(&Snapshot{Sources: map[string]*source.Source{"asana": src}})
	mode := pairingMode{a}
	hand := func(secret string) (*source.Answer, error) {
		return mode.Take("asana", &source.Request{Method: "POST", Header: http.Header{"X-Hook-Secret": {secret}}}, "192.0.2.1")
	}
	await := func(p *pairing) {
		a.pairings.open = map[string]*pairing{"asana": p}
		a.pairings.count.Store(1)
	}
	if answer, err := hand("a secret that nobody waits for"); answer != nil || err != nil || mode.Open("asana") {
		t.Errorf("nobody waits: %v, %v", answer, err)
	}
	p := &pairing{file: name, fresh: true, taken: make(chan handover, 1)}
	await(p)
	if answer, err := hand("too brief"); answer != nil || err != nil || !mode.Open("asana") {
		t.Errorf("no secret: %v, %v", answer, err)
	}
	if answer, err := hand("the first secret of two"); answer == nil || err != nil || mode.Open("asana") {
		t.Errorf("the first: %v, %v", answer, err)
	}
	if answer, err := hand("the second secret of two"); answer != nil || err != nil {
		t.Errorf("the second: %v, %v", answer, err)
	}
	if kept, err := os.ReadFile(name); err != nil || string(kept) != "the first secret of two\n" || len(p.taken) != 1 {
		t.Errorf("kept %q, %v", kept, err)
	}
	await(&pairing{file: name, fresh: true, taken: make(chan handover, 1)})
	if answer, err := hand("a secret in the place of another"); answer != nil || err == nil {
		t.Errorf("where a file is by now: %v, %v", answer, err)
	}
	if kept, _ := os.ReadFile(name); string(kept) != "the first secret of two\n" {
		t.Errorf("then %q is kept", kept)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(name), ".creel*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
