package receiver_test

import (
	"context"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
	"creel/receiver"
	"creel/source"
	"creel/store"
)

// The secret of the public bug reports' inputs.
const bugSecret = "gh-test-secret"

// room is a receiver in front of a real store.
type room struct {
	*desk
	store *store.Store
	path  string
}

// realSources are the sources of the gates and bug reports.
func realSources(t testing.TB) map[string]receiver.Source {
	t.Helper()
	weak := []config.Secret{config.NewSecret(bugSecret)}
	compiled := map[string]receiver.Source{}
	for _, cfg := range []config.Source{
		{Name: "gen", Secrets: weak, Verify: genScheme("body.id", "")},
		{Name: "split", Secrets: weak, Verify: genScheme("body.id", "body.*")},
		{Name: "gh", Provider: "github", Secrets: weak},
		{Name: "waiting", AwaitSecret: true, Verify: genScheme("body.id", "")},
		{Name: "std", Provider: "standard-webhooks", Secrets: []config.Secret{config.NewSecret(standardSecret)}},
		{Name: "std409", Provider: "standard-webhooks", DuplicateStatus: 409, Secrets: []config.Secret{config.NewSecret(standardSecret)}},
		{Name: "closed", Secrets: weak, ProbeStatus: 405, Verify: genScheme("body.id", "")},
	} {
		cfg.AllowWeakSecret = true
		src, problems := source.Compile(cfg, "source[0]", func(string) (string, bool) { return "", false })
		if err := problems.Err(); err != nil {
			t.Fatalf("compile %s: %v", cfg.Name, err)
		}
		compiled[cfg.Name] = src
	}
	return compiled
}

const standardSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func genScheme(id, split string) *config.Scheme {
	return &config.Scheme{
		Auth: "hmac-sha256", Signature: config.StringList{"header.X-Signature-256"},
		Pair: "=", Take: "sha256", Encoding: "hex", Signed: "{body}", Integrity: "full",
		ID: config.StringList{id}, Type: config.StringList{"body.type"}, Split: split,
	}
}

// openReal starts a receiver on a real store in a folder of its own.
func openReal(t testing.TB, options store.Options, o deskOptions) *room {
	t.Helper()
	options.Path = filepath.Join(t.TempDir(), "creel.db")
	options.Log = zerolog.Nop()
	st, err := store.Open(context.Background(), options)
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if o.sources == nil {
		o.sources = realSources(t)
	}
	if o.inbox == nil {
		o.inbox = st
	}
	if o.level == 0 {
		o.level = zerolog.InfoLevel
	}
	return &room{desk: open(t, o), store: st, path: options.Path}
}

// sendGen posts a body to a source with the scheme of gen.
func (r *room) sendGen(t testing.TB, name, body string) reply {
	t.Helper()
	return r.do(t, http.MethodPost, "/in/"+name, genHeader(body), []byte(body))
}

func genHeader(body string) http.Header {
	header := http.Header{"Content-Type": {"application/json"}}
	testkit.SignPlain(header, bugSecret, "", []byte(body), time.Time{})
	header["X-Signature-256"] = []string{"sha256=" + header.Get("X-Signature")}
	header.Del("X-Signature")
	return header
}

func (r *room) events(t testing.TB) []event.Event {
	t.Helper()
	all, err := r.store.Events(context.Background(), event.Selector{}, event.Page{Limit: 500})
	if err != nil {
		t.Fatalf("list the events: %v", err)
	}
	return all
}

func (r *room) detail(t testing.TB, key event.Key) store.EventDetail {
	t.Helper()
	detail, err := r.store.Event(context.Background(), key)
	if err != nil {
		t.Fatalf("read %s: %v", key, err)
	}
	return detail
}

// sizes are those of the database and its WAL.
func (r *room) sizes(t testing.TB) (database, wal int64) {
	t.Helper()
	for name, size := range map[string]*int64{r.path: &database, r.path + "-wal": &wal} {
		if stat, err := os.Stat(name); err == nil {
			*size = stat.Size()
		}
	}
	return database, wal
}

func unhex(t testing.TB, text string) string {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
