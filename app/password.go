package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/bcrypt"

	"creel/event"
)

const (
	// passwordSetting is where the hash of the password stands that the server
	// made up for itself.
	passwordSetting = "page password"
	// hashPrefix begins every bcrypt hash.
	hashPrefix = "$2"
	// hashCost is the work of one comparison: some 60 ms. OWASP's password
	// storage cheat sheet asks for 10 or more. A password of ours has 130 bits,
	// which no cost could protect better.
	hashCost = 10
)

// gate is the password of the page.
type gate struct {
	hash  atomic.Pointer[string] // what stands in the store; nil where the configuration has it
	first string                 // made up at this start, to be printed once
}

// openGate reads the password of the page, or makes one up at the first start.
func (a *App) openGate(ctx context.Context) error {
	if _, err := a.configuredPassword(); err != nil {
		return refusal{fmt.Errorf("admin.password: %w", err)}
	}
	hash, found, err := a.store.Setting(ctx, passwordSetting)
	if err != nil {
		return err
	}
	if found {
		a.gate.hash.Store(&hash)
	}
	if found || !a.snapshot.Load().Config.Admin.Password.IsZero() {
		return nil
	}
	if a.gate.first, err = a.makePassword(ctx); err != nil {
		return err
	}
	a.opt.Log.Info().Str(event.FieldHint, "it is printed once, on the standard output; creel password makes another one").
		Msg("a password for the page was made")
	return nil
}

// configuredPassword is the password or hash of the configuration in force, ""
// where it has none.
func (a *App) configuredPassword() (string, error) {
	secret := a.snapshot.Load().Config.Admin.Password
	if secret.IsZero() {
		return "", nil
	}
	text, err := secret.Resolve(a.opt.Env)
	return string(text), err
}

// knowsPassword compares a password with the one in force. Whoever asks limits
// how often.
func (a *App) knowsPassword(given string) bool {
	want, err := a.configuredPassword()
	if err != nil {
		a.opt.Log.Error().Err(err).Msg("the password of the page can not be read: nobody can log in")
		return false
	}
	if want == "" {
		kept := a.gate.hash.Load()
		return kept != nil && matches(*kept, given)
	}
	return matches(want, given)
}

// matches compares with a bcrypt hash, or with a password as it is. bcrypt
// looks at 72 bytes; what is longer is nobody's password.
func matches(want, given string) bool {
	if want = strings.TrimSuffix(want, "\n"); strings.HasPrefix(want, hashPrefix) {
		return len(given) <= 72 && bcrypt.CompareHashAndPassword([]byte(want), []byte(given)) == nil
	}
	wanted, got := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(wanted[:], got[:]) == 1
}

// makePassword makes a password up and keeps its hash.
func (a *App) makePassword(ctx context.Context) (string, error) {
	made := rand.Text()
	hash, err := bcrypt.GenerateFromPassword([]byte(made), hashCost)
	if err != nil {
		return "", fmt.Errorf("hash the password of the page: %w", err)
	}
	kept := string(hash)
	if err := a.store.KeepSetting(ctx, a.opt.Clock(), passwordSetting, kept); err != nil {
		return "", err
	}
	a.gate.hash.Store(&kept)
	return made, nil
}

var errConfiguredPassword = errors.New("the configuration sets [admin] password: change it there, and reload")

// NewPassword implements admin.Access: a password that nobody has used yet
// takes the place of the one that was made up before, and whoever is logged in
// is logged out.
func (a *App) NewPassword(ctx context.Context, action event.Action) (string, error) {
	if !a.snapshot.Load().Config.Admin.Password.IsZero() {
		return "", refusal{errConfiguredPassword}
	}
	action.Kind = event.ActionNewPassword
	if _, err := a.store.Note(ctx, a.opt.Clock(), action); err != nil {
		return "", err
	}
	made, err := a.makePassword(ctx)
	if err == nil {
		a.page.EndSessions()
		a.opt.Log.Info().Str(event.FieldActor, action.Actor).Msg("a new password for the page was made")
	}
	return made, err
}

// FirstPassword is the password that this start made up, "" where there was one
// before. It is shown once.
func (a *App) FirstPassword() string { return a.gate.first }
