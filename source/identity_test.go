package source

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

func TestGateR9SecondKeyByBody(t *testing.T) {
	t.Parallel()
	s := gh(t)
	body := []byte(`{"zen":"one"}`)
	first := s.Receive(signedBy(t, s, body, "X-GitHub-Delivery", "g-1", "X-GitHub-Event", "push"), bugNow)
	again := s.Receive(signedBy(t, s, body, "X-GitHub-Delivery", "g-2", "X-GitHub-Event", "push"), bugNow)
	if first.BodyKey != again.BodyKey || first.BodyWindow != 35*24*time.Hour {
		t.Errorf("the same body is no second key: window %v", first.BodyWindow)
	}
	other := s.Receive(signedBy(t, s, []byte(`{"zen":"two"}`), "X-GitHub-Delivery", "g-1"), bugNow)
	if other.BodyKey == first.BodyKey {
		t.Error("another body has the same second key")
	}
	// The rule follows from what is signed, not from the name of the preset.
	want := map[string]bool{"github": true, "shopify": true, "razorpay": true, "stripe": false,
		"standard-webhooks": false, "svix": false, "slack": false}
	for _, sub := range subjects(t) {
		src := mustCompile(t, sub.cfg)
		if has, known := want[sub.name]; known && has != (src.BodyWindow() > 0) {
			t.Errorf("%s: window %v", sub.name, src.BodyWindow())
		}
	}
	off := config.Duration(0)
	src := gen(t, func(cfg *config.Source) { cfg.BodyWindow = &off; cfg.Verify.ID = config.StringList{"header.X-Id"} })
	if r := src.Receive(signedBy(t, src, body, "X-Id", "1"), bugNow); r.BodyWindow != 0 {
		t.Error("a window that is off is on")
	}
}

func TestGateR13AuthenticButUnreadable(t *testing.T) {
	t.Parallel()
	s := gen(t, func(cfg *config.Source) {
		cfg.Verify.Account = config.StringList{"body.account"}
		cfg.Verify.Object = config.StringList{"body.object.id"}
	})
	seen := map[string]string{}
	for name, c := range map[string]struct{ body, reason string }{
		"no id":            {`{"type":"ping"}`, "no event id"},
		"null id":          {`{"type":"ping","id":null}`, "no event id"},
		"empty id":         {`{"type":"ping","id":""}`, "no event id"},
		"object id":        {`{"type":"ping","id":{}}`, "no event id"},
		"array id":         {`{"type":"ping","id":[1]}`, "no event id"},
		"not JSON":         {`hello world`, "not valid JSON"},
		"empty":            {``, "not valid JSON"},
		"cut off":          {`{"id":"a"`, "not valid JSON"},
		"something behind": {`{"id":"a"} x`, "not valid JSON"},
		"too deep":         {`{"id":"deep-1","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "deeper"},
		"doubled id":       {`{"id":"a","id":"b"}`, "twice"},
		"doubled type":     {`{"id":"a","type":"x","type":"y"}`, "twice"},
		"doubled account":  {`{"id":"a","account":"x","account":"y"}`, "twice"},
		"object account":   {`{"id":"a","account":{}}`, "account"},
		"scalar body":      {`7`, "no event id"},
	} {
		r := s.Receive(signedBy(t, s, []byte(c.body)), bugNow)
		wantDead(t, r, c.reason)
		id := r.Items[0].Key.ID
		if id != event.HashID([]byte(c.body)) {
			t.Errorf("%s: the key is not the body's hash", name)
		}
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s share a key", name, other)
		}
		seen[id] = name
	}
	// What is not used may be doubled, and a type that nobody knows is fine.
	wantAccepted(t, s.Receive(signedBy(t, s, []byte(`{"id":"a","x":1,"x":2,"type":"never heard of"}`)), bugNow), "a")
}

func TestBugHTTP10DeepNesting(t *testing.T) {
	t.Parallel()
	body := `{"id":"deep-1","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`
	r := gen(t, nil).Receive(genPost([]byte(body), "f8b689429c078de9cd2c4be3a46bb31dd0706701771949244da579f7b18d28e6"), bugNow)
	wantDead(t, r, "deeper")
}

func TestBugHTTP11EveryDigit(t *testing.T) {
	t.Parallel()
	s := gen(t, nil)
	wantAccepted(t, s.Receive(genPost([]byte(`{"id":9007199254740993,"type":"t"}`), "ceaf875d968dd2fcc74796fc4ade558981942c6532765435949a83c5d183266f"), bugNow), "9007199254740993")
	wantAccepted(t, s.Receive(genPost([]byte(`{"id":9007199254740992,"type":"t"}`), "111853e2772c2d86d200fa4137cb22e915a474f4672ccfecccb10f6d38c6e37c"), bugNow), "9007199254740992")
}

func TestBugHTTP13NUL(t *testing.T) {
	t.Parallel()
	s := gen(t, nil)
	wantAccepted(t, s.Receive(genPost([]byte(`{"id":"d-9","s":"a\u0000b"}`), "32a74cb6214e0e6bb6678d7a7c7096af5a223806bf16215d13ddcd19a3d4c15c"), bugNow), "d-9")
	wantAccepted(t, s.Receive(signedBy(t, s, []byte(`{"id":"a\u0000b"}`)), bugNow), "a\x00b")
	wantDead(t, s.Receive(signedBy(t, s, []byte("raw\x00body")), bugNow), "not valid JSON")
}

func TestBugHTTP15InvalidUTF8(t *testing.T) {
	t.Parallel()
	body := unhex(t, "7b226964223a22642d36222c2273223a22ff227d")
	r := gen(t, nil).Receive(genPost(body, "4a8691b9b023b7c3b69b96b7b166c5f1fd15a5eb11ba182347a0f397a1efeee6"), bugNow)
	wantAccepted(t, r, "d-6")
	if string(r.Body) != string(body) {
		t.Error("the body was rewritten")
	}
}

func splitting(t testing.TB) *Source {
	t.Helper()
	return gen(t, func(cfg *config.Source) { cfg.Verify.Split = "body" })
}

func TestBugHTTP16SeveralEvents(t *testing.T) {
	t.Parallel()
	s := splitting(t)
	r := s.Receive(genPost([]byte(`[{"id":"e1"},{"id":"e2"},{"id":"e2"}]`), "3cb2fb90b32331ad5b09e54bd5d2fb3daa1376b9928b3b37fd3bd1652249bb1c"), bugNow)
	wantAccepted(t, r, "e1", "e2", "e2")
	if r.Items[2].Part != "body.2" || r.Items[1].Content != r.Items[2].Content {
		t.Errorf("%+v", r.Items[2])
	}
	r = s.Receive(signedBy(t, s, []byte(`[{"id":"e1"},{"no":"id"},7,null,{"id":"e2"}]`)), bugNow)
	states := ""
	for _, item := range r.Items {
		states += string(item.State) + " "
	}
	if states != "pending dead dead dead pending " {
		t.Errorf("a bad element cost its neighbours: %s", states)
	}
	if r := s.Receive(signedBy(t, s, []byte(`[]`)), bugNow); r.Refused() || len(r.Items) != 0 {
		t.Errorf("an empty list: %+v", r)
	}
	wantDead(t, s.Receive(signedBy(t, s, []byte(`[`+strings.Repeat("1,", maxEvents)+`1]`)), bugNow), "more than")
	deep := gen(t, func(cfg *config.Source) { cfg.Verify.Split = "body.entry.*.changes.*" })
	r = deep.Receive(signedBy(t, deep, []byte(`{"entry":[{"changes":[{"id":"c1"},{"id":"c2"}]},{"changes":[{"id":"c3"}]}]}`)), bugNow)
	wantAccepted(t, r, "c1", "c2", "c3")
	if r.Items[2].Part != "body.entry.1.changes.0" {
		t.Errorf("part %q", r.Items[2].Part)
	}
	r = deep.Receive(signedBy(t, deep, []byte(`{"entry":[{"changes":[{"id":"c1"}]},{"messaging":[]}]}`)), bugNow)
	if len(r.Items) != 2 || r.Items[0].State != event.Dead || r.Items[1].State != event.Pending {
		t.Errorf("an entry without changes vanished: %+v", r.Items)
	}
	wantDead(t, deep.Receive(signedBy(t, deep, []byte(`{"x":1}`)), bugNow), "body.entry")
}

func TestBugHTTP17MissingID(t *testing.T) {
	t.Parallel()
	s := gen(t, nil)
	wantDead(t, s.Receive(genPost([]byte(`{"type":"ping"}`), "569420a7569516cc08ce3fa48d7625113189fe3b21222447aa2a1fb8af52f6bd"), bugNow), "no event id")
}

func TestBugHTTP20ContentTypes(t *testing.T) {
	t.Parallel()
	s := gen(t, nil)
	for _, kind := range []string{"text/plain; charset=UTF-8", "", "application/json;charset=iso-8859-1", "application/x-www-form-urlencoded"} {
		req := genPost(unhex(t, cafe), cafeSig)
		req.Header.Set("Content-Type", kind)
		wantAccepted(t, s.Receive(req, bugNow), "d-1")
	}
}

func TestBugHTTP21UnknownType(t *testing.T) {
	t.Parallel()
	s := stripe(t, nil, "whsec_test_new")
	wantAccepted(t, s.Receive(signedBy(t, s, []byte(`{"id":"evt_9","type":"made.up"}`)), bugNow), "evt_9")
}

func TestBugDUP06Content(t *testing.T) {
	t.Parallel()
	s := gen(t, nil)
	a := s.Receive(genPost([]byte(`{"id":"x-same","amount":10}`), "129612f4048fdf7769e27083832478902cb68cb177f543ac48b44f607524fc6f"), bugNow)
	b := s.Receive(genPost([]byte(`{"id":"x-same","amount":99}`), "e233b88c4a2825d28214026b9c1299db1c53d0d0eed2faa69d4a544de6a9ec54"), bugNow)
	wantAccepted(t, a, "x-same")
	wantAccepted(t, b, "x-same")
	if a.Items[0].Content == b.Items[0].Content {
		t.Error("two amounts are one content")
	}
	st := stripe(t, nil, "whsec_test_new")
	content := func(body string) [16]byte { return st.Receive(signedBy(t, st, []byte(body)), bugNow).Items[0].Content }
	if content(`{"id":"e","pending_webhooks":1,"x":1}`) != content(`{"id":"e","pending_webhooks":2,"x":1}`) {
		t.Error("Stripe's pending_webhooks makes a conflict")
	}
	if content(`{"id":"e","pending_webhooks":1,"x":1}`) == content(`{"id":"e","pending_webhooks":1,"x":2}`) {
		t.Error("another value makes no conflict")
	}
	two := gen(t, func(cfg *config.Source) { cfg.Verify.Volatile = []string{"body.b", "body.a", "body.n"} })
	of := func(body string) [16]byte {
		return two.Receive(signedBy(t, two, []byte(body)), bugNow).Items[0].Content
	}
	if of(`{"id":1,"a":1,"b":1}`) != of(`{"id":1,"a":2,"b":{"x":3}}`) {
		t.Error("two volatile places are not both left out")
	}
}

func TestBugDUP08Accounts(t *testing.T) {
	t.Parallel()
	s := stripe(t, nil, "whsec_test_new")
	keys := map[event.Key]bool{}
	for _, account := range []string{`"acct_a"`, `"acct_b"`, `null`, `"a/b"`} {
		r := s.Receive(signedBy(t, s, []byte(`{"id":"evt_1","account":`+account+`}`)), bugNow)
		wantAccepted(t, r, "evt_1")
		keys[r.Items[0].Key] = true
	}
	if len(keys) != 4 {
		t.Errorf("%d keys for 4 accounts", len(keys))
	}
	mapped := stripe(t, func(cfg *config.Source) { cfg.Accounts = map[string]string{"acct_a": "tenant 1"} }, "whsec_test_new")
	r := mapped.Receive(signedBy(t, mapped, []byte(`{"id":"evt_1","account":"acct_a"}`)), bugNow)
	wantAccepted(t, r, "evt_1")
	if tenant, ok := mapped.Tenant("acct_a"); !ok || tenant != "tenant 1" {
		t.Errorf("tenant %q", tenant)
	}
	r = mapped.Receive(signedBy(t, mapped, []byte(`{"id":"evt_1","account":"acct_b"}`)), bugNow)
	if r.Items[0].State != event.Dead || !strings.Contains(r.Items[0].Error, "account") || r.Items[0].Key.Account != "acct_b" {
		t.Errorf("an unknown account: %+v", r.Items[0])
	}
}

func TestBugDUP09TestMode(t *testing.T) {
	t.Parallel()
	live := stripe(t, func(cfg *config.Source) { cfg.Mode = "live" }, "whsec_test_new")
	test := stripe(t, func(cfg *config.Source) { cfg.Mode = "test" }, "whsec_test_new")
	for flag, skipped := range map[string][2]int{"true": {0, 1}, "false": {1, 0}, "null": {0, 0}} {
		body := []byte(`{"id":"evt_1","livemode":` + flag + `}`)
		for i, s := range []*Source{live, test} {
			r := s.Receive(signedBy(t, s, body), bugNow)
			if r.Skipped != skipped[i] || len(r.Items) != 1-skipped[i] {
				t.Errorf("livemode %s on source %d: %d skipped, %d items", flag, i, r.Skipped, len(r.Items))
			}
		}
	}
}

func TestIgnoredTypes(t *testing.T) {
	t.Parallel()
	s := stripe(t, func(cfg *config.Source) { cfg.Ignore = []string{"customer.*", "ping"} }, "whsec_test_new")
	for body, ignored := range map[string]bool{
		`{"id":"a","type":"customer.created"}`: true,
		`{"id":"b","type":"invoice.paid"}`:     false,
		`{"type":"ping"}`:                      true,
		`{"id":"c"}`:                           false,
	} {
		item := s.Receive(signedBy(t, s, []byte(body)), bugNow).Items[0]
		if got := item.State == event.Ignored; got != ignored || item.DropBody != ignored {
			t.Errorf("%s: %s, drops its body: %v", body, item.State, item.DropBody)
		}
	}
}

func TestMatchType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, kind string
		want          bool
	}{
		{"*", "", true}, {"*", "orders/paid", true}, {"orders/*", "orders/paid", true}, {"a*b*c", "axxbyyc", true},
		{"a*b*c", "axxbyy", false}, {"invoice.?aid", "invoice.paid", true}, {"x", "", false}, {"", "", true},
		{"*.paid", "invoice.paid", true}, {"*a*a*a*a*a*b", strings.Repeat("a", 60), false},
	} {
		if got := event.MatchGlob(c.pattern, c.kind); got != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.kind, got)
		}
	}
}

func TestCompositeIDs(t *testing.T) {
	t.Parallel()
	with := func(id string) *Source {
		return gen(t, func(cfg *config.Source) {
			cfg.Verify.ID = config.StringList{id}
			cfg.Verify.Object = config.StringList{"body.object"}
			cfg.Verify.Version = config.StringList{"body.version"}
			cfg.Verify.Account = config.StringList{"body.account"}
		})
	}
	receive := func(s *Source, body string) event.Item {
		return s.Receive(signedBy(t, s, []byte(body)), bugNow).Items[0]
	}
	triple := with("{type}/{object}/{version}")
	if id := receive(triple, `{"type":"t/1","object":"50%","version":7}`).Key.ID; id != "t%2F1/50%25/7" {
		t.Errorf("id %q", id)
	}
	if item := receive(triple, `{"type":"t","object":"o"}`); item.State != event.Dead {
		t.Error("a composite without one of its parts is an id")
	}
	whole := with("body.id")
	if id := receive(whole, `{"id":"a/b%"}`).Key.ID; id != "a/b%" {
		t.Errorf("a plain id was changed: %q", id)
	}
	long := strings.Repeat("x", 300)
	if item := receive(whole, `{"id":"`+long+`"}`); item.Key.ID != event.HashID([]byte(long)) || item.LongID != long {
		t.Errorf("a long id: %q", item.Key.ID)
	}
	hash := with("body-sha256")
	if id := receive(hash, `{"x":1}`).Key.ID; id != event.HashID([]byte(`{"x":1}`)) {
		t.Errorf("id %q", id)
	}
	ping := with("{receipt}")
	if receive(ping, `{}`).Key == receive(ping, `{}`).Key {
		t.Error("two receipts are one event")
	}
	if ping.BodyWindow() != 0 {
		t.Error("a thin ping repeats its body on purpose")
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	prints := map[string]string{}
	for name, change := range map[string]func(*config.Source){
		"as it is": nil,
		"id":       func(cfg *config.Source) { cfg.Verify.ID = config.StringList{"body.other"} },
		"account":  func(cfg *config.Source) { cfg.Verify.Account = config.StringList{"body.account"} },
		"split":    func(cfg *config.Source) { cfg.Verify.Split = "body" },
	} {
		print := gen(t, change).Fingerprint()
		for other, known := range prints {
			if known == print {
				t.Errorf("%s and %s have one fingerprint", name, other)
			}
		}
		prints[name] = print
	}
	same := gen(t, func(cfg *config.Source) {
		cfg.Verify.Type = config.StringList{"body.kind"}
		cfg.Secrets = append(cfg.Secrets, config.NewSecret("another secret, long enough"))
	}).Fingerprint()
	if same != prints["as it is"] {
		t.Error("a setting that makes no key changes the fingerprint")
	}
}

func TestIdentitiesOfPresets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, kind string
		want           event.Item
	}{
		{"stripe", "invoice.paid", event.Item{Key: event.Key{Account: "acct_creel_sample"}, Type: "invoice.paid", Version: "1700000000"}},
		{"github", "issues.opened", event.Item{Key: event.Key{Account: "octocat"}, Type: "issues.opened", Object: "issue/3001", Version: "2023-11-14T22:13:20Z"}},
		{"github", "ping", event.Item{Key: event.Key{Account: "octocat"}, Type: "ping", Object: "repository/1"}},
		{"shopify", "orders/paid", event.Item{Type: "orders/paid", Object: "gid://shopify/Order/820982911946154508", Version: "2023-11-14T22:13:20Z"}},
		{"razorpay", "payment.captured", event.Item{Key: event.Key{Account: "acc_CreelSample01"}, Type: "payment.captured", Version: "1700000000"}},
		{"slack", "message", event.Item{Key: event.Key{Account: "T0CREEL"}, Type: "message", Object: "C0CREEL", Version: "1700000000"}},
		{"svix", "user.created", event.Item{Type: "user.created", Version: "2023-11-14T22:13:20Z"}},
		{"standard-webhooks", "contact.created", event.Item{Type: "contact.created", Version: "2023-11-14T22:13:20Z"}},
	} {
		sub := subject{cfg: config.Source{Provider: c.provider}}
		sub.finish(t)
		s := mustCompile(t, sub.cfg)
		req, err := s.Sign(s.Sample(c.kind, "the-id", bugNow), Signing{At: bugNow})
		if err != nil {
			t.Fatal(err)
		}
		r := s.Receive(req, bugNow)
		wantAccepted(t, r, "the-id")
		item := r.Items[0]
		got := fmt.Sprint(item.Key.Account, "|", item.Type, "|", item.Version)
		if want := fmt.Sprint(c.want.Key.Account, "|", c.want.Type, "|", c.want.Version); got != want {
			t.Errorf("%s: %s, want %s", c.provider, got, want)
		}
		if c.want.Object != "" && item.Object != c.want.Object {
			t.Errorf("%s: object %q, want %q", c.provider, item.Object, c.want.Object)
		}
	}
}

func TestRepeatedIDHeader(t *testing.T) {
	t.Parallel()
	s := gh(t)
	req := signedBy(t, s, []byte(`{"zen":"x"}`), "X-GitHub-Delivery", "g-1")
	req.Header.Add("X-GitHub-Delivery", "g-2")
	wantDead(t, s.Receive(req, bugNow), "twice")
}

func TestSlackForms(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, config.Source{Name: "slack", Provider: "slack", Secrets: []config.Secret{config.NewSecret("slack-test-secret")}})
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	r := s.Receive(signedBy(t, s, []byte("command=%2Fdeploy&team_id=T1&channel_id=C1&trigger_id=1.2.3&text=now"), form...), bugNow)
	wantAccepted(t, r, "1.2.3")
	if item := r.Items[0]; item.Type != "/deploy" || item.Key.Account != "T1" || item.Object != "C1" {
		t.Errorf("%+v", item)
	}
	r = s.Receive(signedBy(t, s, []byte("payload=%7B%22type%22%3A%22block_actions%22%2C%22trigger_id%22%3A%229%22%2C%22team%22%3A%7B%22id%22%3A%22T1%22%7D%7D"), form...), bugNow)
	wantAccepted(t, r, "9")
	if item := r.Items[0]; item.Type != "block_actions" || item.Part != "form.payload" || item.Key.Account != "T1" {
		t.Errorf("%+v", item)
	}
}
