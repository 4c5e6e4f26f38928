package source

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// bugNow is the clock of the vectors with a fixed time.
var bugNow = time.Unix(1_700_000_000, 0)

// gen is the source that the reports are written for.
func gen(t testing.TB, change func(*config.Source)) *Source {
	t.Helper()
	cfg := config.Source{Name: "gen", AllowWeakSecret: true, Verify: testScheme(t, "gen"),
		Secrets: []config.Secret{config.NewSecret("gh-test-secret")}}
	if change != nil {
		change(&cfg)
	}
	return mustCompile(t, cfg)
}

func gh(t testing.TB) *Source {
	t.Helper()
	return mustCompile(t, config.Source{Name: "gh", Provider: "github", AllowWeakSecret: true,
		Secrets: []config.Secret{config.NewSecret("gh-test-secret")}})
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// post is a request with header pairs.
func post(body []byte, pairs ...string) *Request {
	header := http.Header{}
	for i := 0; i+1 < len(pairs); i += 2 {
		header.Add(pairs[i], pairs[i+1])
	}
	return &Request{Method: "POST", Header: header, Body: body}
}

func genPost(body []byte, sig string) *Request {
	return post(body, "Content-Type", "application/json", "X-Signature-256", "sha256="+sig)
}

// signedBy signs a body as the source wants it.
func signedBy(t testing.TB, s *Source, body []byte, pairs ...string) *Request {
	t.Helper()
	d := Draft{Header: http.Header{}, Body: body}
	for i := 0; i+1 < len(pairs); i += 2 {
		d.Header.Set(pairs[i], pairs[i+1])
	}
	req, err := s.Sign(d, Signing{At: bugNow})
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func wantAccepted(t testing.TB, r Result, ids ...string) {
	t.Helper()
	if r.Refused() || r.Answer != nil {
		t.Fatalf("refused: %q %s", r.Cause, r.Detail)
	}
	var got []string
	for _, item := range r.Items {
		if item.State != event.Pending {
			t.Errorf("%s is %s: %s", item.Key, item.State, item.Error)
		}
		got = append(got, item.Key.ID)
	}
	if !slices.Equal(got, ids) {
		t.Fatalf("ids %q, want %q", got, ids)
	}
}

func wantCause(t testing.TB, r Result, want Cause) {
	t.Helper()
	if r.Cause != want {
		t.Errorf("cause %q (%s), want %q", r.Cause, r.Detail, want)
	}
}

func wantDead(t testing.TB, r Result, reason string) {
	t.Helper()
	if r.Refused() || len(r.Items) != 1 {
		t.Fatalf("refused %q, %d items", r.Cause, len(r.Items))
	}
	item := r.Items[0]
	if item.State != event.Dead || !strings.Contains(item.Error, reason) {
		t.Errorf("%s: %s %q, want dead for %q", item.Key, item.State, item.Error, reason)
	}
	if !strings.HasPrefix(item.Key.ID, "sha256:") {
		t.Errorf("the key of a dead one is %q, not a hash", item.Key.ID)
	}
}

func TestBugSIG01RawBytes(t *testing.T) {
	t.Parallel()
	body := unhex(t, "7b20226222203a20312c0a20202261223a322e30202c226964223a22642d3422207d0a")
	r := gen(t, nil).Receive(genPost(body, "e0f865992add6770e76ff4a45aafdf1c958e67ae84448d869fd65cb3cb0f60ad"), bugNow)
	wantAccepted(t, r, "d-4")
	if !bytes.Equal(r.Body, body) {
		t.Error("the body that is kept is not the one that came")
	}
}

var (
	cafe    = "7b226964223a22642d31222c226e6f7465223a22636166c3a920f09f918d227d"
	cafeSig = "aa60ead952bb514f9bfbea051e2f17a9a86e747ddb6ac4ab31f202719ad89da9"
)

func TestBugSIG02NonASCII(t *testing.T) {
	t.Parallel()
	s := gen(t, nil)
	escaped := []byte(`{"id":"d-1","note":"caf\u00e9 \ud83d\udc4d"}`)
	const escapedSig = "dcdfe772d94c5f14157add02be9abd1924f190b88c3d8658d81be24334e2d4da"
	wantAccepted(t, s.Receive(genPost(unhex(t, cafe), cafeSig), bugNow), "d-1")
	first, second := s.Receive(genPost(unhex(t, cafe), cafeSig), bugNow), s.Receive(genPost(escaped, escapedSig), bugNow)
	wantAccepted(t, second, "d-1")
	if first.Items[0].Content == second.Items[0].Content {
		t.Error("two spellings are one content: a conflict would not be seen")
	}
	wantCause(t, s.Receive(genPost(unhex(t, cafe), escapedSig), bugNow), WrongSignature)
}

func TestBugSIG03LineSeparator(t *testing.T) {
	t.Parallel()
	body := unhex(t, "7b226964223a22642d32222c22726566223a22e280a8e280a83732343831322d3232227d")
	r := gen(t, nil).Receive(genPost(body, "fb498c46ea293499604b98499a8fe9a68cc1e60f8c831bdbe52d0b228d95c851"), bugNow)
	wantAccepted(t, r, "d-2")
}

const (
	stripeBody = `{"id":"evt_1","object":"event","created":1700000000,"livemode":false,"type":"invoice.paid"}`
	stripeNew  = "db3b45caadd41adf56d8d92c807e2a54db1e4ffe14dfd1341da25b867e53340e"
	stripeOld  = "34f29f3a00d524d9168f9382b24bfa95c2ed6ffe5c98b0e1b0c047fdb3e39411"
)

func stripe(t testing.TB, change func(*config.Source), secrets ...string) *Source {
	t.Helper()
	cfg := config.Source{Name: "stripe", Provider: "stripe", AllowWeakSecret: true}
	for _, secret := range secrets {
		cfg.Secrets = append(cfg.Secrets, config.NewSecret(secret))
	}
	if change != nil {
		change(&cfg)
	}
	return mustCompile(t, cfg)
}

func stripePost(body, header string) *Request {
	return post([]byte(body), "Content-Type", "application/json", "Stripe-Signature", header)
}

func TestBugSIG06SeveralSignatures(t *testing.T) {
	t.Parallel()
	s := stripe(t, nil, "whsec_test_new")
	zeros := strings.Repeat("0", 64)
	for _, header := range []string{
		"t=1700000000,v1=" + zeros + ",v1=" + stripeNew,
		"t=1700000000,v1=" + stripeNew + ",v1=" + zeros,
		"t=1700000000,v0=" + zeros + ",v1=zz,v1=" + stripeNew,
		"t=1700000000, v1=" + stripeNew + ",",
	} {
		wantAccepted(t, s.Receive(stripePost(stripeBody, header), bugNow), "evt_1")
	}
	wantCause(t, s.Receive(stripePost(stripeBody, "t=1700000000,v1="+zeros), bugNow), WrongSignature)
	wantCause(t, s.Receive(stripePost(stripeBody, "t=1700000000,v0="+stripeNew), bugNow), MalformedSignature)
	wantCause(t, s.Receive(stripePost(stripeBody, "t=1700000000,t=1700000001,v1="+stripeNew), bugNow), MalformedTimestamp)
	many := strings.Repeat(",v1="+zeros, 16)
	wantCause(t, s.Receive(stripePost(stripeBody, "t=1700000000"+many+",v1="+stripeNew), bugNow), WrongSignature)
}

func TestBugSIG07TwoSecrets(t *testing.T) {
	t.Parallel()
	both := stripe(t, nil, "whsec_test_old", "whsec_test_new")
	for index, sig := range []string{stripeOld, stripeNew} {
		r := both.Receive(stripePost(stripeBody, "t=1700000000,v1="+sig), bugNow)
		wantAccepted(t, r, "evt_1")
		if r.SecretIndex != index {
			t.Errorf("secret %d, want %d", r.SecretIndex, index)
		}
	}
	one := stripe(t, nil, "whsec_test_new")
	wantCause(t, one.Receive(stripePost(stripeBody, "t=1700000000,v1="+stripeOld), bugNow), WrongSignature)
}

func TestBugSIG09StandardWebhooksList(t *testing.T) {
	t.Parallel()
	body := []byte(`{"type":"user.created","id":"u1"}`)
	for _, provider := range []string{"standard-webhooks", "svix"} {
		s := mustCompile(t, config.Source{Name: "sw", Provider: provider,
			Secrets: []config.Secret{config.NewSecret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX")}})
		for _, brand := range []string{"webhook", "svix"} {
			r := s.Receive(post(body, brand+"-id", "msg_1", brand+"-timestamp", "1700000000",
				brand+"-signature", "v1,AAAA v1a,BBBB v1,ghzRmitGQciAK7cTqMq5RJUrBJCH29l1Wvq+PspILJs="), bugNow)
			wantAccepted(t, r, "msg_1")
			if r.BodyWindow != 0 {
				t.Error("a signed id needs no second key")
			}
		}
	}
}

func TestBugSIG11FailsClosed(t *testing.T) {
	t.Parallel()
	s := gen(t, nil)
	body := unhex(t, cafe)
	wantCause(t, s.Receive(post(body), bugNow), MissingSignature)
	wantCause(t, s.Receive(genPost(body, "f97aff8e03f5505ae5fa3b9f08ce9ac7bf1dd582170ff0998eafe7bbc8830563"), bugNow), WrongSignature)
	for _, secrets := range [][]config.Secret{nil, {config.NewSecret("")}, {config.NewSecret("env:UNSET")}} {
		src, problems := Compile(config.Source{Name: "gen", Verify: testScheme(t, "gen"), Secrets: secrets}, "source[0]", noEnv)
		if src != nil || problems.Err() == nil {
			t.Errorf("secrets %v: the source starts", secrets)
		}
	}
}

func TestBugSIG13OddHeaders(t *testing.T) {
	t.Parallel()
	s := gen(t, nil)
	for _, value := range []string{"", "sha256=", "sha256=abc", strings.Repeat("é", 64), cafeSig, "sha256",
		strings.Repeat("a", 16<<10), "sha256=" + strings.Repeat("é", 32), "sha1=" + cafeSig, "=", "==", ",", "sha256=" + cafeSig + "00"} {
		r := s.Receive(post(unhex(t, cafe), "X-Signature-256", value), bugNow)
		if !r.Refused() {
			t.Errorf("%.20q was taken", value)
		}
	}
}

func TestBugSIG15UpperCaseHex(t *testing.T) {
	t.Parallel()
	wantAccepted(t, gen(t, nil).Receive(genPost(unhex(t, cafe), strings.ToUpper(cafeSig)), bugNow), "d-1")
}

func TestBugSIG16CanonicalBase64(t *testing.T) {
	t.Parallel()
	in64 := gen(t, func(cfg *config.Source) { cfg.Verify.Encoding = "base64" })
	padded := "qmDq2VK7UU+b++oFHi8XqahudH3basSrMfICcZrYnak="
	wantAccepted(t, in64.Receive(genPost(unhex(t, cafe), " "+padded), bugNow), "d-1")
	for _, other := range []string{
		strings.TrimRight(padded, "="),
		strings.NewReplacer("+", "-", "/", "_").Replace(padded),
		strings.Replace(padded, "nak=", "nal=", 1), // other unused bits
		cafeSig,
	} {
		if r := in64.Receive(genPost(unhex(t, cafe), other), bugNow); !r.Refused() {
			t.Errorf("%q was taken as base64", other)
		}
		if r := gen(t, nil).Receive(genPost(unhex(t, cafe), other), bugNow); other != cafeSig && !r.Refused() {
			t.Errorf("%q was taken as hex", other)
		}
	}
	wantCause(t, gen(t, nil).Receive(genPost(unhex(t, cafe), padded), bugNow), MalformedSignature)
}

func TestBugSIG18OnlyTheConfiguredHeader(t *testing.T) {
	t.Parallel()
	zeros := "sha256=" + strings.Repeat("0", 64)
	right := "sha256=" + cafeSig
	s := gh(t)
	wantAccepted(t, s.Receive(post(unhex(t, cafe), "X-GitHub-Delivery", "g-1", "X-Signature-256", zeros, "X-Hub-Signature-256", right), bugNow), "g-1")
	wantCause(t, s.Receive(post(unhex(t, cafe), "X-GitHub-Delivery", "g-1", "X-Signature-256", right, "X-Hub-Signature-256", zeros), bugNow), WrongSignature)
	wantCause(t, s.Receive(post(unhex(t, cafe), "X-GitHub-Delivery", "g-1", "X-Hub-Signature-256", right, "X-Hub-Signature-256", zeros), bugNow), MalformedSignature)
	wantCause(t, s.Receive(post(unhex(t, cafe), "X-GitHub-Delivery", "g-1", "X-Hub-Signature", "sha1=c0"), bugNow), MissingSignature)
	moved := gen(t, func(cfg *config.Source) { cfg.Verify.Signature = config.StringList{"header.X-Elsewhere"} })
	wantAccepted(t, moved.Receive(post(unhex(t, cafe), "X-Elsewhere", right), bugNow), "d-1")
}

func TestBugSIG19PublicURL(t *testing.T) {
	t.Parallel()
	tw := mustCompile(t, config.Source{Name: "tw", AllowWeakSecret: true, Verify: testScheme(t, "twilio-form"),
		PublicURL: "https://hooks.example.test/in/tw?acct=1", Secrets: []config.Secret{config.NewSecret("tw-test-token")}})
	form := []byte("From=%2B15550001111&Body=hi+there&To=%2B15550002222&AddOns=%7B%22status%22%3A%22successful%22%7D")
	for sig, want := range map[string]Cause{"getdmrsqiMSOZu5N4GSaUDSPaOk=": "", "IVz9J9c1IyBg7H14DgZLQ9ENSo8=": WrongSignature} {
		req := post(form, "Content-Type", "application/x-www-form-urlencoded", "X-Twilio-Signature", sig,
			"X-Forwarded-Proto", "http", "X-Forwarded-Host", "evil.example")
		req.Query = "acct=1"
		wantCause(t, tw.Receive(req, bugNow), want)
	}
}

func TestBugSIG22URLAndBody(t *testing.T) {
	t.Parallel()
	sq := mustCompile(t, config.Source{Name: "sq", AllowWeakSecret: true, Provider: "square",
		PublicURL: "https://hooks.example.test/in/square", Secrets: []config.Secret{config.NewSecret("sq-test-key")}})
	body := []byte(`{"merchant_id":"M1","type":"order.updated","event_id":"sq-1"}`)
	wantAccepted(t, sq.Receive(post(body, "X-Square-HmacSha256-Signature", "aXzY3vGJO+6tuOs6DF8zpw8vS7tDmQlK487WRmI1JO4="), bugNow), "sq-1")
	r := sq.Receive(post(body, "X-Square-HmacSha256-Signature", "bnBna3C/w8bqicWQjCXqmbRO4nOHjbDo1cjVec7YQxE="), bugNow)
	wantCause(t, r, WrongSignature)
	if !strings.Contains(r.Detail, "https://hooks.example.test/in/square") || strings.Contains(r.Detail, "sq-test-key") {
		t.Errorf("the detail does not help: %s", r.Detail)
	}
}

func TestBugSIG23SendGridCRLF(t *testing.T) {
	t.Parallel()
	sg := mustCompile(t, config.Source{Name: "sg", Verify: testScheme(t, "sendgrid"),
		Secrets: []config.Secret{config.NewSecret("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEN2tKMOvC5anEDaGp3iPPTIOwLCD4cpMkR13Jr/V4T5CTqrzoUfzAzHXEwv6SVsTYljP7NVxfT27squwmUebcEA==")}})
	body := `[{"sg_event_id":"ev1","event":"processed"},` + "\r\n" + `{"sg_event_id":"ev2","event":"delivered"}]` + "\r\n"
	send := func(body string) Result {
		return sg.Receive(post([]byte(body), "X-Twilio-Email-Event-Webhook-Timestamp", "1700000000",
			"X-Twilio-Email-Event-Webhook-Signature", "MEUCIQDGuSSbTZ4EeEbMTDMQbR2EcQsGLCl/4wfd0vp68tXsyQIgclWbX0ImP7anktxIORiK+1t8JFmTB6ejTVZyAhR22Mw="), bugNow)
	}
	r := send(body)
	wantAccepted(t, r, "ev1", "ev2")
	if r.Items[0].Part != "body.0" || r.Items[1].Part != "body.1" || r.Items[1].Type != "delivered" {
		t.Errorf("parts %q %q", r.Items[0].Part, r.Items[1].Part)
	}
	wantCause(t, send(strings.TrimSuffix(body, "\r\n")), WrongSignature)
}

func TestBugSIG24GitHubForm(t *testing.T) {
	t.Parallel()
	body := []byte("payload=%7B%22id%22%3A%22d-8%22%2C%22zen%22%3A%22a%2Bb+c%22%7D")
	req := post(body, "Content-Type", "application/x-www-form-urlencoded", "X-GitHub-Delivery", "g-8", "X-GitHub-Event", "ping",
		"X-Hub-Signature-256", "sha256=c74ccc4474e9f1efd63768e36f1433faf4d8a28de65ff379f1091de403a16776")
	r := gh(t).Receive(req, bugNow)
	wantAccepted(t, r, "g-8")
	if r.Items[0].Part != "form.payload" || r.Items[0].Type != "ping" || !bytes.Equal(r.Body, body) {
		t.Errorf("%+v", r.Items[0])
	}
	empty := gh(t)
	wantDead(t, empty.Receive(signedBy(t, empty, []byte("other=1"), "Content-Type", "application/x-www-form-urlencoded", "X-GitHub-Delivery", "g"), bugNow), "form.payload")
}

func TestBugSIG27WindowIsPerSource(t *testing.T) {
	t.Parallel()
	late := bugNow.Add(20 * time.Minute)
	header := "t=1700000000,v1=" + stripeNew
	wantCause(t, stripe(t, nil, "whsec_test_new").Receive(stripePost(stripeBody, header), late), TooOld)
	for _, window := range []time.Duration{30 * time.Minute, 0} {
		over := config.Duration(window)
		wide := stripe(t, func(cfg *config.Source) { cfg.Verify = &config.Scheme{Late: &over} }, "whsec_test_new")
		wantAccepted(t, wide.Receive(stripePost(stripeBody, header), late), "evt_1")
	}
	off := config.Duration(0)
	_, problems := Compile(config.Source{Name: "s", Provider: "stripe", AllowWeakSecret: true, Verify: &config.Scheme{Late: &off},
		Secrets: []config.Secret{config.NewSecret("whsec_test_new")}}, "source[0]", noEnv)
	if !strings.Contains(problems.Warnings().Error(), "source[0].verify.late") {
		t.Error("a window that is off is not said")
	}
}

func TestBugSIG28Mandrill(t *testing.T) {
	t.Parallel()
	md := mustCompile(t, config.Source{Name: "md", AllowWeakSecret: true, Verify: testScheme(t, "mandrill"),
		PublicURL: "https://hooks.example.test/in/md", Secrets: []config.Secret{config.NewSecret("md-test-key")}})
	body := []byte("mandrill_events=%5B%7B%22event%22%3A%22open%22%2C%22url%22%3A%22https%3A%5C%2F%5C%2Fx.test%5C%2Fa%22%7D%5D")
	r := md.Receive(post(body, "Content-Type", "application/x-www-form-urlencoded", "X-Mandrill-Signature", "AH485vvFd4va0HqsACFINbMyGLI="), bugNow)
	wantDead(t, r, "no event id")
	if r.Items[0].Type != "open" || r.Items[0].Part != "form.mandrill_events|body.0" {
		t.Errorf("%+v", r.Items[0])
	}
}

func TestBugSIG29Gzip(t *testing.T) {
	t.Parallel()
	packed := unhex(t, "1f8b0800000000000203ab56ca4c51b2524aafd23554aa050039759aed0d000000")
	overPlain := "685fcdc7ba1b7642064d058b883186643248d9ebf7d30ad01202e73d48e05604"
	overSent := "47053eba3922932ca5272a499cc40f10f75c73a769afcbd7be213ddba9254dee"
	source := func(compressed string) *Source {
		return gen(t, func(cfg *config.Source) {
			cfg.Verify.Encodings, cfg.Verify.Compressed, cfg.MaxBody = []string{"gzip"}, compressed, 64<<10
		})
	}
	send := func(s *Source, body []byte, sig string) Result {
		return s.Receive(post(body, "Content-Encoding", "gzip", "X-Signature-256", "sha256="+sig), bugNow)
	}
	r := send(source("plain"), packed, overPlain)
	wantAccepted(t, r, "gz-1")
	if string(r.Body) != `{"id":"gz-1"}` {
		t.Errorf("kept %q", r.Body)
	}
	wantAccepted(t, send(source("sent"), packed, overSent), "gz-1")
	wantCause(t, send(source("plain"), packed, overSent), WrongSignature)
	wantCause(t, send(source("sent"), packed, overPlain), WrongSignature)
	wantCause(t, send(gen(t, nil), packed, overPlain), UnsupportedEncoding)
	wantCause(t, send(source("plain"), packed[:12], overPlain), UnsupportedEncoding)
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	if _, err := w.Write(make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	wantCause(t, send(source("plain"), bomb.Bytes(), overPlain), TooLarge)
}

func TestBugSIG30ByteOrderMark(t *testing.T) {
	t.Parallel()
	body := unhex(t, "efbbbf7b226964223a22642d35227d")
	r := gen(t, nil).Receive(genPost(body, "8a34b9eec08de539a5e15d63e86a1791f6db0455f1dfe878bdfbd6fb75f14abd"), bugNow)
	wantAccepted(t, r, "d-5")
	if !bytes.Equal(r.Body, body) {
		t.Error("the mark was not kept")
	}
	form := gen(t, func(cfg *config.Source) { cfg.Verify.ID, cfg.Verify.Type = config.StringList{"form.id"}, nil })
	r = form.Receive(post(unhex(t, "efbbbf69643d662d3126783d31"), "Content-Type", "application/x-www-form-urlencoded",
		"X-Signature-256", "sha256=1ffb5b69f9523b12713af340297287285593da9a72e96ff8ecef9f523e530cd6"), bugNow)
	wantAccepted(t, r, "f-1")
}

func TestBugSIG31WindowBothSides(t *testing.T) {
	t.Parallel()
	s := stripe(t, nil, "whsec_test_new")
	for offset, want := range map[int]Cause{60: "", 299: "", 300: "", 301: TooNew, 600: TooNew, -300: "", -301: TooOld} {
		at := bugNow.Add(time.Duration(offset) * time.Second)
		req, err := s.Sign(Draft{Body: []byte(stripeBody)}, Signing{At: at})
		if err != nil {
			t.Fatal(err)
		}
		// The clock stands inside a second: the edge is still inside.
		wantCause(t, s.Receive(req, bugNow.Add(999*time.Millisecond)), want)
	}
	inMillis := stripePost(stripeBody, "t=1700000000000,v1=67afe2033661f5344373ec13179596036eaae1dbf52cae0e05e8814facfb496e")
	wantCause(t, s.Receive(inMillis, bugNow), TooNew)
	declared := stripe(t, func(cfg *config.Source) { cfg.Verify = &config.Scheme{Unit: "ms"} }, "whsec_test_new")
	wantAccepted(t, declared.Receive(inMillis, bugNow), "evt_1")
}

func TestBugSHAKE02Slack(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, config.Source{Name: "slack", Provider: "slack", Secrets: []config.Secret{config.NewSecret("slack-test-secret")}})
	body := []byte(`{"type":"url_verification","challenge":"3eZbrw1aBm"}`)
	r := s.Receive(post(body, "X-Slack-Request-Timestamp", "1700000000",
		"X-Slack-Signature", "v0=f27a38cbcdac564e09075d2d0a7fed80c504c88c2985bb0fb20746fc0d4d83dd"), bugNow)
	if r.Answer == nil || r.Answer.Body != "3eZbrw1aBm" || r.Answer.Type != "text/plain" || len(r.Items) > 0 {
		t.Errorf("%+v", r)
	}
	wantCause(t, s.Receive(post(body), bugNow), MissingSignature)
}
