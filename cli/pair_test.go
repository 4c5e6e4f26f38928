package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"creel/internal/testkit"
)

// pairable is a site whose source gets its secret from its sender.
func pairable(t *testing.T, secrets string) *site {
	t.Helper()
	s := newSite(t, "")
	s.configure(t, strings.Replace(plain(s.app.URL, ""), `secrets = ["env:SHOP_SECRET"]`, "await_secret = true\n"+secrets, 1)+`
[[rule]]
name  = "all"
match = { source = "notion" }
  [rule.forward]
  to = "app"

[[source]]
name = "notion"
await_secret = true
secrets = ["file:notion.secret"]
  [source.verify]
  auth      = "hmac-sha256"
  signature = "header.x-signature"
  id        = "body.id"
  [source.verify.pairing]
  secret = "body.verification_token"
  show   = true
`)
	text, err := os.ReadFile(filepath.Join(s.Dir, "creel.toml"))
	if err != nil {
		t.Fatal(err)
	}
	handover := `
  [source.verify.pairing]
  secret = "header.x-hook-secret"
  [source.verify.pairing.answer]
  header = { X-Hook-Secret = "{header.x-hook-secret}" }
`
	s.configure(t, strings.Replace(string(text), `integrity = "full"`, `integrity = "full"`+handover, 1))
	s.Start(t)
	return s
}

// handOver hands a secret over again and again until it is answered with a
// status.
func (s *site) handOver(t *testing.T, secret string, want int) http.Header {
	t.Helper()
	var header http.Header
	testkit.Poll(t, soon, fmt.Sprintf("a handover that is answered with %d", want), func() bool {
		request, err := http.NewRequest(http.MethodPost, s.URL("/in/shop"), strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Hook-Secret", secret)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		header = response.Header
		return response.StatusCode == want
	})
	return header
}

// handOnce hands a secret over and gives the status of the answer.
func (s *site) handOnce(t *testing.T, secret string) int {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, s.URL("/in/shop"), strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Hook-Secret", secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// pairingRun is a creel pair that waits.
type pairingRun struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
}

func startPairing(t *testing.T, s *site, args ...string) *pairingRun {
	t.Helper()
	p := &pairingRun{cmd: exec.Command(testkit.Binary(t), append([]string{"pair"}, args...)...)}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.Dir, &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

func (p *pairingRun) ends(t *testing.T, code int) string {
	t.Helper()
	if got := codeOf(p.cmd.Wait()); got != code {
		t.Fatalf("creel pair: exit %d, want %d\n%s%s", got, code, &p.out, &p.err)
	}
	return p.out.String() + p.err.String()
}

// The secret that a sender hands over is taken while an operator waits for
// it, once, kept for the server alone, and in force at once.
func TestPair(t *testing.T) {
	t.Parallel()
	s := pairable(t, `secrets = ["file:shop.secret"]`)
	secret := s.canary.Secret
	s.handOver(t, secret, 503) // nobody waits
	if _, err := os.Stat(filepath.Join(s.Dir, "shop.secret")); err == nil {
		t.Fatal("a secret was taken though nobody waits")
	}
	waiting := startPairing(t, s, "shop", "--reason", "new webhook")
	if echo := s.handOver(t, secret, 200); echo.Get("X-Hook-Secret") != secret {
		t.Errorf("answered with %v", echo)
	}
	said := waiting.ends(t, 0)
	if !strings.Contains(said, "The secret of shop came from 127.0.0.1.") || !strings.Contains(said, "shop.secret and in force") || strings.Contains(said, secret) {
		t.Errorf("pair said %s", said)
	}
	file, err := os.Stat(filepath.Join(s.Dir, "shop.secret"))
	if err != nil || file.Mode().Perm() != 0o600 {
		t.Fatalf("the secret's file: %v, %v", file, err)
	}
	s.send(t, `{"id":"e1","type":"order.paid"}`)
	s.handOver(t, secret, 200)                        // its first answer was lost
	s.handOver(t, "another secret of anybody's", 401) // nobody waits any more
	if kept, _ := os.ReadFile(filepath.Join(s.Dir, "shop.secret")); string(kept) != secret+"\n" {
		t.Errorf("kept %q", kept)
	}
	if said := command(t, s.Process, 1, "pair", "shop"); !strings.Contains(said, "--replace") || strings.Contains(said, "creel pair shop again") {
		t.Errorf("with a secret: %s", said)
	}
	replacing := startPairing(t, s, "shop", "--replace")
	s.handOver(t, "another "+secret, 200)
	replacing.ends(t, 0)
	s.canary.Secret = "another " + secret
	s.send(t, `{"id":"e2","type":"order.paid"}`)
	command(t, s.Process, 0, "reload")
	s.send(t, `{"id":"e3","type":"order.paid"}`)
	trail := command(t, s.Process, 0, "audit")
	if strings.Count(trail, " pair ") != 2 || !strings.Contains(trail, "shop, by 127.0.0.1") || !strings.Contains(trail, "new webhook") {
		t.Errorf("audit:\n%s", trail)
	}
	s.Kill()
	s.Start(t) // the file is what counts
	s.send(t, `{"id":"e4","type":"order.paid"}`)
}

// Without a file the secret is shown once, and so it is where the sender wants
// it back. The waiting ends with its time, and with whoever waits.
func TestPairShows(t *testing.T) {
	t.Parallel()
	s := pairable(t, "")
	const secret = "a secret that a person enters"
	waiting := startPairing(t, s, "shop", "--json")
	s.handOver(t, secret, 200)
	var paired struct {
		Source, Secret, Peer, File string
		InForce                    bool `json:"in_force"`
	}
	if err := json.Unmarshal([]byte(strings.Split(waiting.ends(t, 0), "\n")[0]), &paired); err != nil || paired.Secret != secret || paired.File != "" || paired.InForce {
		t.Errorf("%+v, %v", paired, err)
	}
	s.handOver(t, secret, 503) // it is not in force

	notion := startPairing(t, s, "notion")
	testkit.Poll(t, soon, "the handover", func() bool {
		response, err := http.Post(s.URL("/in/notion"), "application/json", strings.NewReader(`{"verification_token":"`+secret+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode == 200
	})
	if said := notion.ends(t, 0); !strings.Contains(said, secret) || !strings.Contains(said, "The sender wants it back") {
		t.Errorf("pair said %s", said)
	}

	if said := command(t, s.Process, 1, "pair", "shop", "--for", "1s"); !strings.Contains(said, "nothing over within 1s") {
		t.Errorf("in time: %s", said)
	}
	s.handOver(t, secret, 503)
	given := startPairing(t, s, "shop")
	logged(t, s.Process, 4, "pairing mode is open")
	if err := given.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	given.ends(t, 1)
	logged(t, s.Process, 2, "pairing mode is closed")
	if status := s.handOnce(t, secret); status != 503 {
		t.Errorf("after the end of who waited: answered with %d", status)
	}

	if said := command(t, s.Process, 2, "pair", "nobody"); strings.Contains(said, "Waiting") || !strings.Contains(said, "one of ") {
		t.Errorf("%s", said)
	}
	command(t, s.Process, 2, "pair")
	command(t, s.Process, 2, "pair", "shop", "--for", "2h")
	late := startPairing(t, s, "shop")
	logged(t, s.Process, 5, "pairing mode is open")
	if exit := s.Terminate(); exit.Code != 0 || exit.After > 8*time.Second {
		t.Errorf("stop: %+v", exit)
	}
	late.ends(t, 1)
	if bytes.Contains(s.Stderr(), []byte(secret)) {
		t.Error("the log shows the secret")
	}
}

// What can not be kept is not taken: the sender is told to come again.
func TestPairWhereTheSecretCanNotBeKept(t *testing.T) {
	t.Parallel()
	s := pairable(t, `secrets = ["file:missing/shop.secret"]`)
	if said := command(t, s.Process, 1, "pair", "shop"); !strings.Contains(said, "could not be kept in") {
		t.Errorf("pair said %s", said)
	}
}
