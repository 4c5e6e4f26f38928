package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"creel/config"
	"creel/path"
)

// defaultWindow is how far a signed time may lie from ours on either side
// where neither preset nor source says otherwise. Five minutes is what the
// reference libraries of Standard Webhooks take.
const defaultWindow = 5 * time.Minute

// scheme is a config.Scheme, compiled.
type scheme struct {
	auth  string
	rule  keyRule
	keyBy place
	sig   signatures

	signed      template
	each        path.Split
	urlPorts    bool
	bodyHash    place
	bodyHashEnc encoding
	plainSigned bool // of a compressed body the plain bytes are signed
	need        []choice
	equal       []equality
	integrity   Integrity

	timestamp choice
	window    window

	id, kind, account, object, version choice
	live                               place
	volatile                           []place
	split                              path.Split
	unwrap                             path.Path
	readsBody                          bool // identities stand in the JSON of the body
	readsForm                          bool

	challenges []challenge
	pairing    *pairing
	answer     *config.Answer
	encodings  []string
}

// Integrity says whether the signature covers the body.
type Integrity string

// The degrees of integrity. Partial and None mean that whoever can send with a
// captured signature, or knows the token, can change what the event says.
const (
	Full    Integrity = "full"
	Partial Integrity = "partial"
	None    Integrity = "none"
)

// auths lists the ways of signing that are data.
func auths() []string {
	return []string{"hmac-sha1", "hmac-sha256", "hmac-sha512", "ed25519", "ecdsa-p256", "rsa-sha256",
		"jwt-hs256", "token", "basic", "none"}
}

// compiler turns a configuration into a scheme and collects what is wrong.
type compiler struct {
	prefix   string
	settings map[string]string
	problems config.Problems
}

// exampleHint is what to do about a place that is not understood: its message
// says what there is.
const exampleHint = "[source.verify] in config.example.toml has an example of each"

func (c *compiler) fault(key, message, hint string) {
	c.problems = append(c.problems, config.Problem{Path: c.prefix + key, Message: message, Hint: hint})
}

func (c *compiler) warn(key, message, hint string) {
	c.problems = append(c.problems, config.Problem{Path: c.prefix + key, Message: message, Hint: hint, Warning: true})
}

func (c *compiler) oneOf(key, value string, allowed []string) string {
	if !slices.Contains(allowed, value) {
		c.fault(key, fmt.Sprintf("%q is unknown", value), "one of "+strings.Join(allowed, ", "))
	}
	return value
}

func (c *compiler) place(key, text string, words []string) place {
	p, err := parsePlace(text, words, c.settings)
	if err != nil {
		c.fault(key, err.Error(), exampleHint)
	}
	return p
}

// template compiles text with places; bare says that text without braces is a
// place.
func (c *compiler) template(key, text string, bare bool, words []string) template {
	t, err := parseTemplate(text, bare, func(inside string) (place, error) {
		return parsePlace(inside, words, c.settings)
	})
	if err != nil {
		c.fault(key, err.Error(), exampleHint)
	}
	return t
}

func (c *compiler) choice(key string, list []string, words []string) choice {
	var out choice
	for _, text := range list {
		out = append(out, c.template(key, text, true, words))
	}
	return out
}

// orElse is the value, or the fallback where it is empty or 0.
func orElse[V comparable](value, fallback V) V { return cmp.Or(value, fallback) }

// scheme compiles the language. It reports everything at once.
func (c *compiler) scheme(in config.Scheme) *scheme {
	s := &scheme{auth: c.oneOf(".verify.auth", in.Auth, auths())}
	c.secretRule(s, in)
	c.signature(s, in)
	c.content(s, in)
	c.times(s, in)
	c.identity(s, in)
	c.covered(s, in)
	for i, one := range in.Challenge {
		s.challenges = append(s.challenges, c.challenge(fmt.Sprintf(".verify.challenge[%d]", i), one))
	}
	s.pairing = c.pairing(in.Pairing)
	s.answer = in.Answer
	for _, name := range in.Encodings {
		s.encodings = append(s.encodings, c.oneOf(".verify.content_encodings", name, []string{"gzip"}))
	}
	s.plainSigned = c.oneOf(".verify.compressed", cmp.Or(in.Compressed, "plain"), []string{"plain", "sent"}) == "plain"
	return s
}

func (c *compiler) secretRule(s *scheme, in config.Scheme) {
	forms := []string{"utf8", "base64", "prefixed-base64", "base64-or-utf8", "hex", "html"}
	form := cmp.Or(in.Key, "utf8")
	s.rule = keyRule{auth: in.Auth, form: form, strip: in.Strip, list: in.KeyList, named: in.KeyBy != ""}
	if s.rule.asymmetric() {
		forms = []string{"hex", "base64", "spki-base64", "pem"}
	}
	if in.Auth != "none" {
		c.oneOf(".verify.key", form, forms)
	}
	if in.KeyBy != "" {
		s.keyBy = c.place(".verify.key_by", in.KeyBy, nil)
	}
}

func (c *compiler) signature(s *scheme, in config.Scheme) {
	s.sig = signatures{repeat: in.Repeat, list: in.List, pair: in.Pair, take: in.Take, bare: in.Bare}
	places := in.Signature
	fallback := "hex"
	switch in.Auth {
	case "none":
		if len(places) > 0 {
			c.fault(".verify.signature", "a source without verification has no signature", "leave it out")
		}
		return
	case "basic":
		if len(places) == 0 {
			places = []string{"header.Authorization"}
		}
		s.sig.pair, s.sig.take, s.sig.fold, fallback = " ", "Basic", true, "base64"
	case "token", "jwt-hs256":
		fallback = "text"
		s.sig.fold = in.Pair == " "
	}
	if len(places) == 0 {
		c.fault(".verify.signature", "says not where the signature stands", `such as "header.X-Signature-256"`)
	}
	for _, text := range places {
		p := c.place(".verify.signature", text, nil)
		s.sig.places = append(s.sig.places, p)
		s.sig.any = s.sig.any || p.kind == inHeaders
	}
	if c.oneOf(".verify.match", cmp.Or(in.Match, "first"), []string{"first", "any"}) == "any" {
		s.sig.any = true
	}
	if s.sig.pair == "" && s.sig.take != "" {
		c.fault(".verify.pair", "take names a label and pair does not say what follows it", `such as pair = "="`)
	}
	if s.sig.pair != "" && s.sig.take == "" {
		c.fault(".verify.take", "pair cuts off a label and take does not say which one counts", `such as take = "v1"`)
	}
	s.sig.enc = encoding(c.oneOf(".verify.encoding", cmp.Or(in.Encoding, fallback), encodings()))
}

// content compiles what is signed.
func (c *compiler) content(s *scheme, in config.Scheme) {
	text := in.Signed
	signs := isMAC(s.auth) || s.rule.asymmetric()
	if text == "" && signs {
		text = "{body}"
	}
	if text != "" && !signs {
		c.fault(".verify.signed", "a "+s.auth+" scheme signs no content", "leave it out")
		text = ""
	}
	s.signed = c.template(".verify.signed", text, false, signedWords())
	s.urlPorts = in.URLPorts
	if in.BodyHash != "" {
		s.bodyHash = c.place(".verify.body_hash", in.BodyHash, nil)
		s.bodyHashEnc = encoding(c.oneOf(".verify.body_hash_encoding", cmp.Or(in.BodyHashEncoding, "hex"), encodings()))
	}
	if in.Each != "" {
		each, err := path.ParseSplit(in.Each)
		if err != nil {
			c.fault(".verify.each", err.Error(), exampleHint)
		}
		s.each = each
	}
	for _, text := range in.Need {
		// One entry may name alternatives, as header.a|header.b.
		s.need = append(s.need, c.choice(".verify.need", strings.Split(text, "|"), nil))
	}
	for _, text := range sortedKeys(in.Equal) {
		s.equal = append(s.equal, equality{
			place: c.place(".verify.equal", text, nil),
			want:  c.template(".verify.equal", in.Equal[text], false, []string{"url"}),
		})
	}
	c.degree(s, in)
}

// degree finds out whether the signature covers the body and holds the
// configuration to what it says.
func (c *compiler) degree(s *scheme, in config.Scheme) {
	covers := s.signed.has("body") || s.signed.has("form_sorted") || s.bodyHash.kind != 0
	s.integrity = Integrity(c.oneOf(".verify.integrity", cmp.Or(in.Integrity, s.natural(covers)),
		[]string{string(Full), string(Partial), string(None)}))
	switch {
	case s.integrity == Full && !covers:
		c.fault(".verify.integrity", "the signature does not cover the body",
			`put {body} into signed, or say integrity = "partial" or "none"`)
	case s.integrity == Partial:
		c.warn(".verify.integrity", "the signature covers only a part of the body",
			"whoever captures one request can change the rest of it and send it again")
	case s.integrity == None:
		c.warn(".verify.integrity", "nothing protects the body of a request",
			"whoever knows the URL and what is sent with it can write any event: let a rule fetch the object before it acts on one")
	}
}

func (s *scheme) natural(covers bool) string {
	if covers || isMAC(s.auth) || s.rule.asymmetric() {
		return string(Full)
	}
	return string(None)
}

func (c *compiler) times(s *scheme, in config.Scheme) {
	s.window = window{unit: unit(cmp.Or(in.Unit, string(seconds))), late: defaultWindow, early: defaultWindow}
	c.oneOf(".verify.unit", string(s.window.unit), []string{string(seconds), string(milliseconds), string(rfc3339)})
	s.timestamp = c.choice(".verify.timestamp", in.Timestamp, nil)
	if in.Late != nil {
		s.window.late = time.Duration(*in.Late)
	}
	if in.Early != nil {
		s.window.early = time.Duration(*in.Early)
	}
	if len(s.timestamp) == 0 {
		if in.Late != nil || in.Early != nil {
			c.fault(".verify.timestamp", "a window is set and no place of the signed time", `such as timestamp = "sig.t"`)
		}
		if s.signed.has("ts") {
			c.fault(".verify.timestamp", "{ts} is signed and nothing says where it stands", `such as timestamp = "sig.t"`)
		}
		return
	}
	if s.window.late <= 0 {
		c.warn(".verify.late", "the age of requests is not checked",
			"a captured request is accepted for ever; only the event's key stops it from running twice")
	}
	if s.window.early <= 0 {
		c.warn(".verify.early", "requests signed in the future are accepted", "")
	}
}

func (s *scheme) usesURL() bool { return s.signed.has("url") || s.signed.has("path") || s.equalsURL() }

func (s *scheme) equalsURL() bool {
	return slices.ContainsFunc(s.equal, func(e equality) bool { return e.want.has("url") })
}
