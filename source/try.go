package source

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// trial is one guess at why a signature does not fit: a source, a request and
// keys with one thing changed.
type trial struct {
	part   Part
	likely string
	next   string
	src    *Source
	req    *Request
	keys   []key
}

// guess is a kind of trials, with its name.
type guess struct {
	name   string
	trials iter.Seq[trial]
}

// maxTried bounds what all trials of a diagnosis hash, in bytes.
const maxTried = 256 << 20

// mismatch tries what usually makes a signature not fit. The first guess that
// verifies is what happened: a signature fits nothing by chance.
func (d *Diagnosis) mismatch(s *Source, req *Request, others []*Source) {
	d.Part = PartEither
	d.Next = "compare the secret with the sender's settings (creel check says which are read), and look at what stands between: a proxy or framework that reads the body and writes it anew breaks signatures"
	if len(s.bodyWords()) == 0 {
		d.Part, d.Next = PartSecret, "compare the secret with the sender's settings"
	}
	if d.Cause == WrongBodyHash {
		d.Part, d.Likely = PartBody, "the signature fits, and the body is not the one that it names"
		d.Next = "look at what stands between: a proxy or framework that reads the body and writes it anew breaks signatures"
	}
	spent := 0
	for _, g := range s.guesses(req, d.At, others) {
		d.Tried = append(d.Tried, g.name)
		for t := range g.trials {
			if spent += len(t.req.Body)*max(1, len(t.keys)) + 4096; spent > maxTried {
				return
			}
			if t.src.fits(t.req, t.keys) {
				d.Part, d.Likely, d.Next, d.Tried = t.part, t.likely, t.next, nil
				return
			}
		}
	}
}

// guesses are all kinds, the usual ones first.
func (s *Source) guesses(req *Request, at time.Time, others []*Source) []guess {
	var all []guess
	add := func(name string, trials iter.Seq[trial]) { all = append(all, guess{name, trials}) }
	if len(s.bodyWords()) > 0 {
		add("a body with other line ends", s.lineEnds(req))
	}
	if !s.scheme.rule.asymmetric() {
		add("a secret with blanks, a prefix, or in another encoding", s.otherSecrets(req))
	}
	add("the other sources of the configuration", s.otherSources(req, at, others))
	if len(s.bodyWords()) > 0 {
		add("JSON that was written anew", s.rewritten(req))
	}
	if s.scheme.usesURL() {
		add("other forms of the URL", s.otherURLs(req))
	}
	if slices.ContainsFunc(s.scheme.signed.pieces, s.signedTime) {
		add("another time", s.otherTimes(req))
	}
	if isMAC(s.scheme.auth) && s.scheme.each.IsZero() {
		add("another hash or another form of the signed content", s.otherSchemes(req))
	}
	return all
}

// bodyWords are the ways in which the signature covers the body.
func (s *Source) bodyWords() []string {
	var words []string
	for _, word := range []string{"body", "form_sorted"} {
		if s.scheme.signed.has(word) {
			words = append(words, word)
		}
	}
	if s.scheme.bodyHash.kind != 0 {
		words = append(words, "body_hash")
	}
	return words
}

// fits tells whether the signature of a request fits, whatever its time is.
func (s *Source) fits(req *Request, keys []key) bool {
	timeless := s.with(func(sc *scheme) { sc.window.late, sc.window.early = 0, 0 })
	v, why := timeless.open(req)
	if why != nil {
		return false
	}
	_, why = timeless.scheme.verify(v, keys, time.Time{})
	return why == nil || why.cause == TooOld || why.cause == TooNew // the claims of a JWT come after its signature
}

// with is a copy of the source with one thing of its scheme changed.
func (s *Source) with(change func(*scheme)) *Source {
	other, sc := *s, *s.scheme
	change(&sc)
	other.scheme = &sc
	return &other
}

func withBody(req *Request, body []byte) *Request {
	other := *req
	other.Body = body
	return &other
}

// otherSources tries the request as another source's, and the secrets of the
// others with this scheme.
func (s *Source) otherSources(req *Request, at time.Time, others []*Source) iter.Seq[trial] {
	return func(yield func(trial) bool) {
		for _, other := range others {
			if other == s || other.name == s.name || other.scheme.auth == "none" || len(other.keys) == 0 {
				continue
			}
			t := trial{part: PartSource, src: other, req: req, keys: other.keys,
				likely: fmt.Sprintf("it verifies as the source %q", other.name),
				next:   fmt.Sprintf("correct the URL at the sender: it ends in /in/%s", other.name)}
			if !yield(t) {
				return
			}
			if other.scheme.auth != s.scheme.auth && !(isMAC(s.scheme.auth) && isMAC(other.scheme.auth)) {
				continue
			}
			t.part, t.src = PartSecret, s
			t.likely = fmt.Sprintf("it is signed with the secret of the source %q", other.name)
			t.next = "the secrets of the two are exchanged, or the request was sent to the wrong URL"
			if !yield(t) {
				return
			}
		}
	}
}

// otherURLs tries the forms of the URL that senders and proxies differ in.
func (s *Source) otherURLs(req *Request) iter.Seq[trial] {
	return func(yield func(trial) bool) {
		for _, full := range urlForms(s.publicURL, req.Header.Get("Host")) {
			other := *s
			other.publicURL = full
			for _, query := range []string{req.Query, ""} {
				asked := *req
				asked.Query = query
				shown := withoutUser(full)
				if query == "" && req.Query != "" {
					shown += ", without the query"
				}
				if !yield(trial{part: PartURL, src: &other, req: &asked, keys: s.keys,
					likely: "it is signed for the URL " + shown,
					next:   "public_url has to be what is registered with the sender, to the letter; it is " + withoutUser(s.publicURL)}) {
					return
				}
			}
		}
	}
}

func urlForms(public, host string) []string {
	protocol, rest, ok := strings.Cut(public, "://")
	if !ok {
		return nil
	}
	authority, tail, slash := strings.Cut(rest, "/")
	if slash {
		tail = "/" + tail
	}
	tails := []string{tail, strings.TrimSuffix(tail, "/"), strings.TrimSuffix(tail, "/") + "/"}
	hosts := []string{authority, strings.TrimPrefix(authority, "www."), "www." + authority}
	if host != "" {
		hosts = append(hosts, host)
	}
	var out []string
	for _, scheme := range []string{protocol, "https", "http"} {
		for _, h := range hosts {
			for _, t := range tails {
				form := scheme + "://" + h + t
				out = append(out, form)
				if other := otherPort(form); other != "" {
					out = append(out, other)
				}
			}
		}
	}
	return out
}

// maxTimed is the largest body with which every second of the window is
// tried.
const maxTimed = 64 << 10

// otherTimes tries the signed time in other units, and every second around
// the one that the request names.
func (s *Source) otherTimes(req *Request) iter.Seq[trial] {
	return func(yield func(trial) bool) {
		v, why := s.open(req)
		if why != nil {
			return
		}
		if _, why := s.scheme.sig.read(v); why != nil {
			return
		}
		named, why := s.scheme.readTime(v)
		if why != nil {
			return
		}
		texts := []string{fmt.Sprint(named.UnixMilli()), fmt.Sprint(named.Unix())}
		if len(req.Body) <= maxTimed {
			for off := 1; off <= 300; off++ {
				apart := time.Duration(off) * time.Second
				texts = append(texts, s.scheme.window.format(named.Add(-apart)), s.scheme.window.format(named.Add(apart)))
			}
		}
		for _, text := range texts {
			signed := s.signedAs(text)
			other := s.with(func(sc *scheme) { sc.signed = signed })
			if !yield(trial{part: PartTimestamp, src: other, req: req, keys: s.keys,
				likely: "it is signed for the time " + text + ", and the request names another",
				next:   "something changed the time on the way, or the request was put together by hand"}) {
				return
			}
		}
	}
}

// signedTime tells whether a piece of the signed content is the signed time.
func (s *Source) signedTime(p piece) bool {
	if p.isLiteral() {
		return false
	}
	return p.place.kind == inWord && p.place.name == "ts" ||
		slices.ContainsFunc(s.scheme.timestamp, func(t template) bool { return t.single() && t.reads(p.place) })
}

// signedAs is the signed content with another time in it.
func (s *Source) signedAs(time string) template {
	t := template{text: s.scheme.signed.text, pieces: slices.Clone(s.scheme.signed.pieces)}
	for i, p := range t.pieces {
		if s.signedTime(p) {
			t.pieces[i] = piece{literal: time}
		}
	}
	return t
}

// otherSchemes tries other hashes and the usual forms of what is signed.
func (s *Source) otherSchemes(req *Request) iter.Seq[trial] {
	return func(yield func(trial) bool) {
		for _, auth := range []string{s.scheme.auth, "hmac-sha256", "hmac-sha1", "hmac-sha512"} {
			for _, text := range []string{s.scheme.signed.text, "{body}", "{ts}.{body}", "{ts}{body}", "{ts}:{body}", "{id}.{ts}.{body}", "{url}{body}", "{url}.{body}", "{body}{url}"} {
				c := &compiler{}
				signed := c.template("", text, false, signedWords())
				if c.problems.Err() != nil || signed.has("ts") && len(s.scheme.timestamp) == 0 || signed.has("id") && len(s.scheme.id) == 0 {
					continue
				}
				other := s.with(func(sc *scheme) { sc.auth, sc.rule.auth, sc.signed = auth, auth, signed })
				if !yield(trial{part: PartScheme, src: other, req: req, keys: s.keys,
					likely: fmt.Sprintf("it is signed with %s over %s, and this source verifies %s over %s", auth, text, s.scheme.auth, s.scheme.signed.text),
					next:   fmt.Sprintf("verify.auth = %q and verify.signed = %q, where the sender's documentation says so", auth, text)}) {
					return
				}
			}
		}
	}
}
