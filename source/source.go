package source

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"creel/config"
)

// Numbers that hold where neither preset nor source says otherwise.
const (
	defaultMaxBody    = 1 << 20             // bytes, before and after inflating
	defaultBodyWindow = 35 * 24 * time.Hour // longer than any sender lists or redelivers
	maxEvents         = 10_000              // events of one request
)

// Source is one sender's endpoint, ready to receive. It is immutable and safe
// for concurrent use.
type Source struct {
	name       string
	provider   string
	title      string
	scheme     *scheme
	identity   config.Scheme // as merged, for the fingerprint
	keys       []key
	awaiting   bool
	publicURL  string
	ignore     []string
	mode       string
	accounts   map[string]string
	maxBody    int64
	bodyWindow time.Duration
	preset     *Preset
	status     statuses
	lister     *Lister
}

// statuses are the answers that a source chooses; 0 is the default.
type statuses struct{ reject, duplicate, probe int }

// Compile makes a source of its configuration. prefix is its key path, such
// as source[0]; env reads the environment. The problems are all of them, the
// warnings too; the source is nil where one of them is no warning.
func Compile(cfg config.Source, prefix string, env config.Environment) (*Source, config.Problems) {
	c := &compiler{prefix: prefix}
	in, preset := c.merged(cfg)
	if c.problems.Err() != nil {
		return nil, c.problems
	}
	c.readSettings(cfg, env)
	s := &Source{
		name: cfg.Name, provider: cfg.Provider, identity: in, preset: preset,
		ignore: cfg.Ignore, accounts: cfg.Accounts, publicURL: cfg.PublicURL, title: cfg.Name,
		status: statuses{reject: cfg.RejectStatus, duplicate: cfg.DuplicateStatus, probe: cfg.ProbeStatus},
	}
	if preset != nil {
		s.title = preset.Title
	}
	s.scheme = c.scheme(in)
	c.secrets(s, cfg, env)
	c.behaviour(s, cfg, in)
	c.lister(s, cfg.Reconcile, env)
	if c.problems.Err() != nil {
		return nil, c.problems
	}
	return s, c.problems
}

// merged lays what the owner wrote under [source.verify] over the preset.
func (c *compiler) merged(cfg config.Source) (config.Scheme, *Preset) {
	if cfg.Provider == "" {
		if cfg.Verify == nil {
			c.fault(".provider", "the source names no provider and has no [source.verify] of its own",
				"one of "+strings.Join(presetNames(), ", "))
			return config.Scheme{}, nil
		}
		return *cfg.Verify, nil
	}
	preset, ok, problems := preset(cfg.Provider)
	if !ok {
		hint := ""
		if near := config.Nearest(cfg.Provider, presetNames()); near != "" {
			hint = "did you mean " + near + "? "
		}
		c.fault(".provider", fmt.Sprintf("no preset is called %q", cfg.Provider),
			hint+"one of "+strings.Join(presetNames(), ", ")+"; or describe the sender under [source.verify]")
		return config.Scheme{}, nil
	}
	c.problems = append(c.problems, problems...)
	if cfg.Verify == nil {
		return preset.Scheme, preset
	}
	return overlay(preset.Scheme, *cfg.Verify), preset
}

// readSettings resolves env:, file: and credential: references among the
// settings; anything else is the text itself.
func (c *compiler) readSettings(cfg config.Source, env config.Environment) {
	c.settings = make(map[string]string, len(cfg.Settings))
	for _, name := range sortedKeys(cfg.Settings) {
		secret := config.NewSecret(cfg.Settings[name])
		if secret.Literal() || secret.IsZero() {
			c.settings[name] = cfg.Settings[name]
			continue
		}
		value, err := secret.Resolve(env)
		if err != nil {
			c.unresolved(".settings."+name, err)
		}
		c.settings[name] = string(value)
	}
}

// unresolved reports a secret that could not be read where this program runs.
func (c *compiler) unresolved(key string, err error) {
	problem := config.Problem{Path: c.prefix + key, Message: err.Error(), Unresolved: true}
	var known *config.SecretError
	if errors.As(err, &known) {
		problem.Message, problem.Hint = known.Reason, known.Hint
	}
	c.problems = append(c.problems, problem)
}

func (c *compiler) secrets(s *Source, cfg config.Source, env config.Environment) {
	if s.scheme.auth == "none" {
		if len(cfg.Secrets) > 0 {
			c.fault(".secrets", "the source is not verified and has secrets", "leave them out, or set verify.auth")
		}
		return
	}
	if len(cfg.Secrets) == 0 {
		s.awaiting = cfg.AwaitSecret
		if !cfg.AwaitSecret {
			c.fault(".secrets", "the source has no secret",
				"set it, or await_secret = true until the sender has shown it"+c.pairHint(s))
		}
		return
	}
	for i, secret := range cfg.Secrets {
		at := fmt.Sprintf(".secrets[%d]", i)
		value, err := secret.Resolve(env)
		if cfg.AwaitSecret && errors.Is(err, fs.ErrNotExist) {
			continue // creel pair, or the owner, writes the file
		}
		if err != nil {
			c.unresolved(at, err)
			continue
		}
		for _, text := range secret.Warnings(env) {
			c.warn(at, text, "")
		}
		keys, err := s.scheme.rule.keys(value, i)
		if err != nil {
			c.fault(at, "the secret "+err.Error(), secretHint(s, err))
			continue
		}
		c.addKeys(s, at, keys, cfg.AllowWeakSecret)
	}
	s.awaiting = cfg.AwaitSecret && len(s.keys) == 0
}

func (c *compiler) addKeys(s *Source, at string, keys []key, allowWeak bool) {
	for _, k := range keys {
		if k.weak() && !allowWeak {
			c.fault(at, "the secret "+errShortKey.Error(), "take a longer one, or set allow_weak_secret = true")
		}
		for _, other := range s.keys {
			if k.same(other) {
				c.warn(at, fmt.Sprintf("the secret is the same as secrets[%d]", other.index),
					"a rotation needs the old secret and the new one")
			}
		}
		s.keys = append(s.keys, k)
	}
}

func secretHint(s *Source, err error) string {
	switch {
	case s.preset != nil && s.preset.Secret != "":
		return s.preset.Secret
	case errors.Is(err, errNotBase64), errors.Is(err, errNotHex):
		return "verify.key says how the secret is written"
	}
	return "copy it from the sender's settings"
}

// behaviour compiles what is not the scheme's.
func (c *compiler) behaviour(s *Source, cfg config.Source, in config.Scheme) {
	s.mode = cfg.Mode
	switch cfg.Mode {
	case "", "any":
		s.mode = "any"
	case "live", "test":
		if s.scheme.live.kind == 0 {
			c.fault(".mode", "the scheme does not say where live and test events differ", `set verify.live, or mode = "any"`)
		}
	default:
		c.fault(".mode", fmt.Sprintf("%q is unknown", cfg.Mode), "one of any, live, test")
	}
	s.maxBody = defaultMaxBody
	if in.MaxBody != nil {
		s.maxBody = int64(*in.MaxBody)
	}
	if cfg.MaxBody > 0 {
		s.maxBody = int64(cfg.MaxBody)
	}
	if s.scheme.idIsOpen() {
		s.bodyWindow = defaultBodyWindow
	}
	if cfg.BodyWindow != nil {
		s.bodyWindow = time.Duration(*cfg.BodyWindow)
		if s.bodyWindow == 0 && s.scheme.idIsOpen() {
			c.warn(".body_window", "the id is not signed and the second key by the body's hash is off",
				"a captured request can be sent again under a fresh id")
		}
	}
	if s.scheme.usesURL() {
		switch {
		case cfg.PublicURL == "":
			c.fault(".public_url", "the sender signs the URL that it calls, and it is not known",
				"write it exactly as it is registered with the sender")
		case !validURL(cfg.PublicURL):
			c.fault(".public_url", "is not an http or https URL", "write it exactly as it is registered with the sender")
		}
	}
	if len(cfg.Accounts) > 0 && len(s.scheme.account) == 0 {
		c.fault(".accounts", "the scheme does not say where the account stands", "set verify.account")
	}
}

// Name is the source's name: POST /in/<name>.
func (s *Source) Name() string { return s.name }

// Provider is the preset's name; "" where the owner described the sender.
func (s *Source) Provider() string { return s.provider }

// MaxBody is the largest body that is taken, in bytes.
func (s *Source) MaxBody() int64 { return s.maxBody }

// AcceptsEncoding tells whether a Content-Encoding besides identity is taken.
// It is given in lower case.
func (s *Source) AcceptsEncoding(coding string) bool {
	return slices.Contains(s.scheme.encodings, coding)
}

// RejectStatus is the answer to a request that is not authentic.
func (s *Source) RejectStatus() int { return orElse(s.status.reject, 401) }

// DuplicateStatus is the answer to a receipt whose events are all known.
func (s *Source) DuplicateStatus() int { return orElse(s.status.duplicate, 200) }

// ProbeStatus is the answer to a GET or HEAD that is no handshake.
func (s *Source) ProbeStatus() int { return orElse(s.status.probe, 200) }

// SecretHeaders are the headers that carry the secret itself; nothing may keep
// them.
func (s *Source) SecretHeaders() []string {
	if s.scheme.auth != "token" && s.scheme.auth != "basic" {
		return nil
	}
	var names []string
	for _, p := range s.scheme.sig.places {
		if p.kind == inHeader {
			names = append(names, p.name)
		}
	}
	return names
}

// Integrity says whether the signature covers the body.
func (s *Source) Integrity() Integrity { return s.scheme.integrity }

// Awaiting tells whether the source has no secret yet, so that nothing can be
// verified.
func (s *Source) Awaiting() bool { return s.awaiting }

// Secrets is the number of secrets that are live.
func (s *Source) Secrets() int {
	if len(s.keys) == 0 {
		return 0
	}
	return s.keys[len(s.keys)-1].index + 1
}

// BodyWindow is how long the hash of a body is a second key; 0 is never.
func (s *Source) BodyWindow() time.Duration { return s.bodyWindow }

// Tenant is the owner's name for a sender's account; false where a map is
// configured and has no such account. Without a map it is the account itself.
func (s *Source) Tenant(account string) (string, bool) {
	if s.accounts == nil {
		return account, true
	}
	tenant, ok := s.accounts[account]
	return tenant, ok
}
