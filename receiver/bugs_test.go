package receiver_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"creel/config"
	"creel/event"
	"creel/receiver"
	"creel/source"
	"creel/store"
)

// post sends a body with the signature that a bug report gives for it.
func (r *room) post(t testing.TB, name, body, signature string) reply {
	t.Helper()
	return r.do(t, http.MethodPost, "/in/"+name,
		http.Header{"Content-Type": {"application/json"}, "X-Signature-256": {"sha256=" + signature}}, []byte(body))
}

func (r *room) wantBody(t testing.TB, id, body string) {
	t.Helper()
	if got := r.detail(t, event.Key{Source: "gen", ID: id}); string(got.Body) != body {
		t.Errorf("%s is stored as %q, sent %q", id, got.Body, body)
	}
}

func TestBugHTTP01HeadProbe(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	for _, path := range []string{"/in/gen", "/in/gen/", "/in/gh", "/in/waiting"} {
		got := r.do(t, "HEAD", path, nil, nil)
		if got.status != 200 || got.header.Get("Content-Length") != "0" {
			t.Errorf("%s: %+v", path, got)
		}
	}
	got := r.sendGen(t, "waiting", `{"id":"1"}`)
	if got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("POST without a secret: %+v", got)
	}
	if n := len(r.events(t)); n != 0 {
		t.Errorf("%d events are stored", n)
	}
}

func TestBugHTTP02ProbesAndOtherMethods(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	for _, row := range []struct {
		method, path, allow string
		status              int
	}{
		{"GET", "/in/gen", "", 200},
		{"GET", "/in/closed", "POST", 405},
		{"HEAD", "/in/closed", "POST", 405},
		{"OPTIONS", "/in/gen", "GET, HEAD, POST", 405},
		{"OPTIONS", "/in/closed", "POST", 405},
		{"PUT", "/in/gen/", "GET, HEAD, POST", 405},
		{"DELETE", "/in/gen", "GET, HEAD, POST", 405},
		{"PATCH", "/in/gen", "GET, HEAD, POST", 405},
		{"BREW", "/in/gen", "GET, HEAD, POST", 405},
		{"PUT", "/healthz", "GET, HEAD", 405},
	} {
		got := r.do(t, row.method, row.path, nil, nil)
		if got.status != row.status || got.header.Get("Allow") != row.allow {
			t.Errorf("%s %s: %d, Allow %q", row.method, row.path, got.status, got.header.Get("Allow"))
		}
	}
}

func TestBugHTTP10DeepNesting(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	body := `{"id":"deep-1","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`
	wantStatus(t, r.post(t, "gen", body, "f8b689429c078de9cd2c4be3a46bb31dd0706701771949244da579f7b18d28e6"), 200)
	all := r.events(t)
	if len(all) != 1 || all[0].State != event.Dead || all[0].Error == "" {
		t.Fatalf("events %+v", all)
	}
	r.wantBody(t, all[0].Key.ID, body)
	wantStatus(t, r.sendGen(t, "gen", `{"id":"2"}`), 200)
}

func TestBugHTTP11BigIntegers(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	wantStatus(t, r.post(t, "gen", `{"id":9007199254740993,"type":"t"}`, "ceaf875d968dd2fcc74796fc4ade558981942c6532765435949a83c5d183266f"), 200)
	wantStatus(t, r.post(t, "gen", `{"id":9007199254740992,"type":"t"}`, "111853e2772c2d86d200fa4137cb22e915a474f4672ccfecccb10f6d38c6e37c"), 200)
	var ids []string
	for _, e := range r.events(t) {
		ids = append(ids, e.Key.ID)
	}
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"9007199254740992", "9007199254740993"}) {
		t.Errorf("ids %q", ids)
	}
}

func TestBugHTTP13NUL(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	body := `{"id":"d-9","s":"a\u0000b"}`
	wantStatus(t, r.post(t, "gen", body, "32a74cb6214e0e6bb6678d7a7c7096af5a223806bf16215d13ddcd19a3d4c15c"), 200)
	r.wantBody(t, "d-9", body)
	wantStatus(t, r.sendGen(t, "gen", `{"id":"a\u0000b"}`), 200)
	r.wantBody(t, "a\x00b", `{"id":"a\u0000b"}`)
	wantStatus(t, r.sendGen(t, "gen", "a\x00b"), 200)
	r.wantBody(t, event.HashID([]byte("a\x00b")), "a\x00b")
}

func TestBugHTTP15InvalidUTF8(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	body := unhex(t, "7b226964223a22642d36222c2273223a22ff227d")
	wantStatus(t, r.post(t, "gen", body, "4a8691b9b023b7c3b69b96b7b166c5f1fd15a5eb11ba182347a0f397a1efeee6"), 200)
	r.wantBody(t, "d-6", body)
}

func TestBugHTTP16ManyEventsInOneRequest(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	body := `[{"id":"e1"},{"id":"e2"},{"id":"e2"}]`
	const signature = "3cb2fb90b32331ad5b09e54bd5d2fb3daa1376b9928b3b37fd3bd1652249bb1c"
	for round, row := range []struct {
		got  reply
		rows int
	}{
		{r.post(t, "split", body, signature), 2},
		{r.post(t, "split", body, signature), 2},
	} {
		wantStatus(t, row.got, 200)
		if n := len(r.events(t)); n != row.rows {
			t.Errorf("round %d: %d events", round, n)
		}
	}
	wantStatus(t, r.sendGen(t, "split", `[{"id":"e1"},{"id":"e2"},{"id":"e3"},{"none":1},7,{"id":"e4"}]`), 200)
	states := map[event.State]int{}
	for _, e := range r.events(t) {
		states[e.State]++
	}
	if states[event.Pending] != 4 || states[event.Dead] != 2 {
		t.Errorf("states %v", states)
	}
}

func TestBugHTTP17MissingID(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	const signature = "569420a7569516cc08ce3fa48d7625113189fe3b21222447aa2a1fb8af52f6bd"
	for range 2 {
		wantStatus(t, r.post(t, "gen", `{"type":"ping"}`, signature), 200)
	}
	for _, body := range []string{`{"id":null}`, `{"id":""}`, `{"id":{}}`} {
		wantStatus(t, r.sendGen(t, "gen", body), 200)
	}
	all := r.events(t)
	if len(all) != 4 {
		t.Fatalf("%d events", len(all))
	}
	for _, e := range all {
		if e.State != event.Dead || !strings.HasPrefix(e.Key.ID, "sha256:") {
			t.Errorf("%+v", e)
		}
	}
}

func TestBugHTTP20JSONAsText(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	body := unhex(t, "7b226964223a22642d31222c226e6f7465223a22636166c3a920f09f918d227d")
	for i, contentType := range [][]string{{"text/plain; charset=UTF-8"}, nil, {"application/json;charset=iso-8859-1"}} {
		header := genHeader(body)
		header["Content-Type"] = contentType
		wantStatus(t, r.do(t, "POST", "/in/gen", header, []byte(body)), 200)
		if all := r.events(t); len(all) != 1 || all[0].Key.ID != "d-1" || all[0].Duplicates != i {
			t.Errorf("events %+v", all)
		}
	}
	r.wantBody(t, "d-1", body)
}

func TestBugHTTP21UnknownType(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	wantStatus(t, r.sendGen(t, "gen", `{"id":"1","type":"nobody.knows.it"}`), 200)
	if all := r.events(t); len(all) != 1 || all[0].State != event.Pending {
		t.Errorf("events %+v", all)
	}
}

func TestBugSIG13OddSignatures(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	body := `{"id":"1"}`
	good := genHeader(body).Get("X-Signature-256")
	values := []string{
		"", "sha256=", "sha256=abc", strings.Repeat("é", 64), "sha256=" + strings.Repeat("é", 64),
		strings.TrimPrefix(good, "sha256="), good + "00", good[:len(good)-2], "sha1=" + good[7:], "SHA256", "=", "sha256==" + good[7:],
	}
	for i, value := range values {
		got := r.do(t, "POST", "/in/gen", http.Header{"X-Signature-256": {value}}, []byte(body))
		wantStatus(t, got, 401)
		if n := countsOf(r.desk, "gen").Results["rejected"]; n != int64(i+1) {
			t.Errorf("%q: %d rejects are counted, want %d", value, n, i+1)
		}
	}
	huge := "POST /in/gen HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Signature-256: " + strings.Repeat("a", 16<<10) + "\r\nContent-Length: 2\r\n\r\n{}"
	if answer, _ := r.raw(t, huge); !strings.HasPrefix(answer, "HTTP/1.1 431 ") {
		t.Errorf("huge: %q", answer)
	}
	if strings.Contains(r.log.String(), "panic") || len(r.events(t)) != 0 {
		t.Errorf("log: %s", r.log)
	}
}

func TestBugSIG11FailsOpenNowhere(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	body := unhex(t, "7b226964223a22642d31222c226e6f7465223a22636166c3a920f09f918d227d")
	wantStatus(t, r.do(t, "POST", "/in/gen", nil, []byte(body)), 401)
	wantStatus(t, r.post(t, "gen", body, "f97aff8e03f5505ae5fa3b9f08ce9ac7bf1dd582170ff0998eafe7bbc8830563"), 401)
	wantStatus(t, r.post(t, "gen", body, "AA60EAD952BB514F9BFBEA051E2F17A9A86E747DDB6AC4AB31F202719AD89DA9"), 200)
}

// TestBugSIG07RotationAtTheEdge: both secrets count, by index, until one goes.
func TestBugSIG07RotationAtTheEdge(t *testing.T) {
	t.Parallel()
	sources := realSources(t)
	both := withSecrets(t, "the old secret of 16+", bugSecret)
	sources["gen"] = both
	r := openReal(t, store.Options{}, deskOptions{sources: sources})
	for i := range 3 {
		wantStatus(t, r.sendGen(t, "gen", fmt.Sprintf(`{"id":"%d"}`, i)), 200)
	}
	if counts := countsOf(r.desk, "gen"); !slices.Equal(counts.Secrets, []int64{0, 3}) {
		t.Errorf("secrets %v", counts.Secrets)
	}
}

func withSecrets(t testing.TB, secrets ...string) receiver.Source {
	t.Helper()
	cfg := config.Source{Name: "gen", AllowWeakSecret: true, Verify: genScheme("body.id", "")}
	for _, text := range secrets {
		cfg.Secrets = append(cfg.Secrets, config.NewSecret(text))
	}
	src, problems := source.Compile(cfg, "source[0]", func(string) (string, bool) { return "", false })
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return src
}

// TestBugACK02StoredBeforeTheAnswer: what got 200 is in the file, seen by a
// reader of its own.
func TestBugACK02StoredBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{})
	other, err := store.OpenRead(context.Background(), r.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	for i := range 50 {
		id := fmt.Sprintf("e-%d", i)
		wantStatus(t, r.sendGen(t, "gen", `{"id":"`+id+`"}`), 200)
		if _, err := other.Find(context.Background(), event.Key{Source: "gen", ID: id}); err != nil {
			t.Fatalf("%s was answered and is not stored: %v", id, err)
		}
	}
}
