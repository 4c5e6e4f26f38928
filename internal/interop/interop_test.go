//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
)

const (
	standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	svixSecret     = "whsec_plJ3nmyCDGBKInavdOK15jsl4Uv1mPvD"
	stripeSecret   = "whsec_a_stripe_secret_is_taken_as_text"
	appSecret      = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

const configuration = `
listen   = "127.0.0.1:0"
database = "creel.db"

[admin]
listen   = "127.0.0.1:0"
password = "env:ADMIN_PASSWORD"

[log]
format = "json"

[[source]]
name     = "standard"
provider = "standard-webhooks"
secrets  = ["env:STANDARD_SECRET"]
forward  = "app"

[[source]]
name     = "svix"
provider = "svix"
secrets  = ["env:SVIX_SECRET"]
forward  = "app"

[[source]]
name     = "stripe"
provider = "stripe"
secrets  = ["env:STRIPE_SECRET"]
forward  = "app"

[destination.app]
url    = "DESTINATION"
secret = "env:APP_SECRET"
`

// payloads are what the SDKs sign: Unicode, odd spacing and big numbers must
// arrive as they are.
var payloads = map[string]string{
	"standard": `{"type":"ping", "text":"größer, 大きい",  "big":9007199254740993}`,
	"svix":     "{\n \"type\": \"user.created\",\n \"data\": {\"id\": 1.50}\n}\n",
	"stripe": `{"id":"evt_interop","object":"event","type":"invoice.paid","created":1700000000,"livemode":false,` +
		`"data":{"object":{"id":"in_1","object":"invoice","amount_paid":4200}}}`,
}

type request struct {
	Source string            `json:"source"`
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
}

// TestGateD3OfficialSDKs lets the official npm packages sign what the binary
// receives and verify what it forwards.
func TestGateD3OfficialSDKs(t *testing.T) {
	t.Parallel()
	sdk := install(t)
	app := testkit.NewDestination(t)
	p := testkit.NewProcess(t, strings.Replace(configuration, "DESTINATION", app.URL, 1),
		"STANDARD_SECRET="+standardSecret, "SVIX_SECRET="+svixSecret, "STRIPE_SECRET="+stripeSecret,
		"APP_SECRET="+appSecret, "ADMIN_PASSWORD=a long password for the test")
	p.Start(t)

	var signed []request
	out := node(t, sdk, "sign.mjs", map[string]any{
		"secrets":  map[string]string{"standard": standardSecret, "svix": svixSecret, "stripe": stripeSecret},
		"payloads": payloads,
	})
	if err := json.Unmarshal(out, &signed); err != nil {
		t.Fatalf("read what the SDKs signed: %v: %s", err, out)
	}
	if len(signed) != len(payloads) {
		t.Fatalf("%d requests", len(signed))
	}
	for _, r := range signed {
		if status := post(t, p, r, r.Body+" "); status != http.StatusUnauthorized {
			t.Errorf("an altered %s request: %d", r.Source, status)
		}
		if status := post(t, p, r, r.Body); status != http.StatusOK {
			t.Errorf("a request signed by the %s SDK: %d\n%s", r.Source, status, p.Stderr())
		}
	}

	var received []request
	for _, got := range app.Wait(t, len(signed), 20*time.Second) {
		source := got.Header.Get("Creel-Source")
		if string(got.Body) != payloads[source] {
			t.Errorf("the body of %q changed: %q", source, got.Body)
		}
		header := map[string]string{}
		for name := range got.Header {
			header[strings.ToLower(name)] = got.Header.Get(name)
		}
		received = append(received, request{Source: source, Header: header, Body: string(got.Body)})
	}
	t.Logf("%s", node(t, sdk, "verify.mjs", map[string]any{
		"secret": appSecret, "svixSecret": svixSecret, "stripeSecret": stripeSecret, "received": received,
	}))
	if exit := p.Terminate(); exit.Code != 0 {
		t.Errorf("stop: %+v", exit)
	}
}

// install copies the scripts into a folder of the test and lets npm install
// what the lock file says.
func install(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob("node/*.*")
	if err != nil || len(files) < 4 {
		t.Fatalf("find the scripts: %v %v", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return dir
}

func node(t *testing.T, dir, script string, input any) []byte {
	t.Helper()
	text, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", script)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(text)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, errs.Bytes())
	}
	return out
}

func post(t *testing.T, p *testkit.Process, r request, body string) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, p.URL("/in/"+r.Source), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("send: %v", err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
