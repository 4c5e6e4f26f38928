package app

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/rs/zerolog"

	"creel/config"
)

// The names of the demo that serve starts without a configuration.
const (
	DemoSource      = "demo"
	demoDestination = "demo-app"
	demoHeader      = "X-Signature-256"
)

// Demo is the configuration of a Creel that nobody configured: one source
// with a secret of its own, kept beside the database so that a restart keeps
// it, and all its events forwarded to a small app that the server brings. The
// CREEL_ variables of the environment hold for it too. StartDemoApp makes the
// secret: before the first start there is none, and nothing is written.
func Demo(env config.Environment) (*config.Config, config.Problems) {
	cfg, _, problems := config.Load("", env)
	if problems.Err() != nil {
		return cfg, problems
	}
	demo := config.DefaultSource()
	demo.Name = DemoSource
	demo.Forward = config.StringList{demoDestination}
	demo.Verify = &config.Scheme{
		Auth: "hmac-sha256", Signature: config.StringList{"header." + demoHeader}, Pair: "=", Take: "sha256",
		Encoding: "hex", Signed: "{body}", ID: config.StringList{"body.id"}, Type: config.StringList{"body.type"},
	}
	cfg.Sources = []config.Source{demo}
	app := config.DefaultDestination()
	app.URL = "http://127.0.0.1:1/" // until StartDemoApp knows its port
	cfg.Destinations[demoDestination] = app
	secret := config.NewSecret("file:" + demoSecretPath(cfg))
	if _, err := os.Stat(demoSecretPath(cfg)); errors.Is(err, os.ErrNotExist) {
		secret = config.NewSecret(rand.Text()) // stands in, and is nobody's
	}
	shareSecret(cfg, secret)
	return cfg, problems
}

// shareSecret gives the demo source and the demo app one secret.
func shareSecret(cfg *config.Config, secret config.Secret) {
	cfg.Sources[0].Secrets = []config.Secret{secret}
	app := cfg.Destinations[demoDestination]
	app.Secret = secret
	cfg.Destinations[demoDestination] = app
}

func demoSecretPath(cfg *config.Config) string { return cfg.Database + ".demo-secret" }

// demoSecret reads the secret of the demo, or makes one.
func demoSecret(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSuffix(string(text), "\n"), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the secret of the demo: %w", err)
	}
	secret := rand.Text()
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep the secret of the demo: %w", err)
	}
	return secret, nil
}

// DemoCommand is a command that sends one signed event to the demo, ready to
// be pasted into a terminal.
func (a *App) DemoCommand() (string, error) {
	secret, err := demoSecret(demoSecretPath(a.opt.Config))
	if err != nil {
		return "", err
	}
	body := `{"id":"evt_demo_1","type":"demo.hello","message":"Hello, Creel"}`
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return fmt.Sprintf("curl -i http://%s/in/%s -H 'Content-Type: application/json' -H '%s: sha256=%s' -d '%s'",
		a.Listen, DemoSource, demoHeader, hex.EncodeToString(mac.Sum(nil)), body), nil
}

// Database is the path of the database.
func (a *App) Database() string { return a.opt.Config.Database }

// StartDemoApp starts the app that the demo delivers to, on a port of its
// own, makes the secret where there is none yet, and points the configuration
// at both. The app says what it gets in the log.
func StartDemoApp(cfg *config.Config, log zerolog.Logger) (func(), error) {
	if _, err := demoSecret(demoSecretPath(cfg)); err != nil {
		return nil, err
	}
	shareSecret(cfg, config.NewSecret("file:"+demoSecretPath(cfg)))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the demo app: %w", err)
	}
	destination := cfg.Destinations[demoDestination]
	destination.URL = "http://" + listener.Addr().String() + "/"
	cfg.Destinations[demoDestination] = destination
	server := &http.Server{ReadHeaderTimeout: headerTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log.Info().Str("webhook_id", r.Header.Get("Webhook-Id")).Str("event", r.Header.Get("Creel-Event")).
			Msg("the demo app received a delivery")
		w.WriteHeader(http.StatusNoContent)
	})}
	go func() { _ = server.Serve(listener) }() // ends with Close; the demo has nobody to tell
	return func() { _ = server.Close() }, nil
}
