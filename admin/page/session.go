package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"sync"
	"time"
)

// How long a session lasts: OWASP ASVS 5.0 7.3.
const (
	idleLimit   = 30 * time.Minute
	maxLife     = 8 * time.Hour
	maxSessions = 1000
)

// session is one login. It is known by the hash of its id alone.
type session struct {
	name    string // of the operator, for the audit trail
	token   string // in every form
	begun   time.Time
	lastUse time.Time
	notice  notice // what the next page says about what was done
}

// notice is what there is to say about what was done, on the page that follows.
type notice struct{ path, text string }

// sessions are the logins of this life of the server; a restart ends them.
type sessions struct {
	clock func() time.Time
	mu    sync.Mutex
	all   map[[32]byte]*session
}

func newSessions(clock func() time.Time) *sessions {
	return &sessions{clock: clock, all: map[[32]byte]*session{}}
}

// random is 256 bits as text.
func random() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails, see crypto/rand
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// begin makes a session and returns its id, which is not kept.
func (s *sessions) begin(name string) string {
	id, now := random(), s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, one := range s.all {
		if one.over(now) {
			delete(s.all, key)
		}
	}
	if len(s.all) >= maxSessions {
		clear(s.all)
	}
	s.all[sha256.Sum256([]byte(id))] = &session{name: name, token: random(), begun: now, lastUse: now}
	return id
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.lastUse) > idleLimit || now.Sub(s.begun) > maxLife || now.Before(s.begun)
}

// find gives the session of an id, nil where there is none or it is over, and
// counts as its use.
func (s *sessions) find(id string) *session { return s.look(id, true) }

// look is find; a page that loads itself again is no use of anybody's.
func (s *sessions) look(id string, used bool) *session {
	key, now := sha256.Sum256([]byte(id)), s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[key]
	if one == nil {
		return nil
	}
	if one.over(now) {
		delete(s.all, key)
		return nil
	}
	if used {
		one.lastUse = now
	}
	held := *one
	return &held
}

// end forgets a session: its id is worth nothing from then on.
func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(id)))
}

// say keeps a word for the page of a session that comes next.
func (s *sessions) say(id, path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.all[sha256.Sum256([]byte(id))]; one != nil {
		one.notice = notice{path, text}
	}
}

// hear is that word, once, and on that page alone: another one that is loaded
// meanwhile leaves it.
func (s *sessions) hear(id, path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[sha256.Sum256([]byte(id))]
	if one == nil || one.notice.path != path {
		return ""
	}
	text := one.notice.text
	one.notice = notice{}
	return text
}

func (s *sessions) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.all)
}

// valid tells whether a form was made for this session.
func (s *session) valid(token string) bool {
	return subtle.ConstantTimeCompare([]byte(s.token), []byte(token)) == 1
}

// cookie is how a browser keeps the session. The __Host- prefix binds it to
// this host over TLS; it demands the root path, which a page below a prefix of
// a proxy does not have for itself. __Secure- binds it to TLS alone.
type cookie struct {
	name, path string
	secure     bool
	lasts      time.Duration // 0 is until the browser is closed
}

func newCookie(name, prefix string, secure bool) cookie {
	c := cookie{name: name, path: prefix + "/", secure: secure}
	switch {
	case secure && prefix == "":
		c.name = "__Host-" + name
	case secure:
		c.name = "__Secure-" + name
	}
	return c
}

func (c cookie) read(r *http.Request) string {
	if found, err := r.Cookie(c.name); err == nil {
		return found.Value
	}
	return ""
}

func (c cookie) write(w http.ResponseWriter, id string) {
	made := &http.Cookie{Name: c.name, Value: id, Path: c.path, Secure: c.secure, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		MaxAge: int(c.lasts / time.Second)}
	if id == "" {
		made.MaxAge = -1
	}
	http.SetCookie(w, made)
}
