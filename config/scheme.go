package config

// Scheme is the language in which presets and owners describe a sender: how
// its requests are verified and where its identities stand.
//
// A place is a path of the one path language (body.data.id, header.x-foo,
// query.x, form.x) or, here only, sig.LABEL (a labelled part of the signature
// header), claim.NAME (of a JWT), setting.NAME and const.TEXT. A list of
// places is a list of alternatives: the first that is there counts. Text in
// braces makes a template of places and of the words body, url, method, path,
// ts, id and form_sorted; identities also know type, object, version, account,
// receipt and body-sha256.
type Scheme struct {
	// who signs, and with what
	Auth    string   `toml:"auth"`     // hmac-sha1, hmac-sha256, hmac-sha512, ed25519, ecdsa-p256, rsa-sha256, jwt-hs256, token, basic, none
	Key     string   `toml:"key"`      // utf8, base64, prefixed-base64, base64-or-utf8, hex, html, spki-base64, pem
	Strip   []string `toml:"strip"`    // prefixes cut off the secret, in order
	KeyList string   `toml:"key_list"` // separator, where one secret holds several
	KeyBy   string   `toml:"key_by"`   // place that names the key; secrets are then written name:secret

	// where the signature stands
	Signature StringList `toml:"signature"`
	Match     string     `toml:"match"`    // first: the first place that is there counts; any: all of them do
	Repeat    bool       `toml:"repeat"`   // the signature header may come several times
	List      string     `toml:"list"`     // separator of the elements of a signature list
	Pair      string     `toml:"pair"`     // separator between label and value inside an element
	Take      string     `toml:"take"`     // label of the elements that count
	Bare      bool       `toml:"bare"`     // elements without that label count too
	Encoding  string     `toml:"encoding"` // hex, hex-lower, base64, base64-raw, base64url, base64url-padded, text

	// what is signed
	Signed           string            `toml:"signed"` // template of the signed content
	Each             string            `toml:"each"`   // place of the items that are signed one by one, with * for every element
	URLPorts         bool              `toml:"url_ports"`
	BodyHash         string            `toml:"body_hash"` // place of the body's SHA-256
	BodyHashEncoding string            `toml:"body_hash_encoding"`
	Compressed       string            `toml:"compressed"` // which bytes of a compressed body are signed: plain or sent
	Need             []string          `toml:"need"`       // places that must be present
	Equal            map[string]string `toml:"equal"`      // place = template it must be equal to
	Integrity        string            `toml:"integrity"`  // full, partial, none: whether the signature covers the body

	// how old it may be
	Timestamp StringList `toml:"timestamp"`
	Unit      string     `toml:"unit"` // s, ms, rfc3339
	Late      *Duration  `toml:"late"` // "0s" switches the check off
	Early     *Duration  `toml:"early"`

	// identity: places or templates
	ID       StringList `toml:"id"`
	Type     StringList `toml:"type"`
	Account  StringList `toml:"account"`
	Object   StringList `toml:"object"`
	Version  StringList `toml:"version"`
	Live     string     `toml:"live"`     // place of the live/test flag
	Volatile []string   `toml:"volatile"` // places that differ between deliveries of one event
	Split    string     `toml:"split"`    // place of the events of one request, with * for every element
	Unwrap   string     `toml:"unwrap"`   // form field whose JSON text is the event, in a form-encoded request

	MaxBody   *Size       `toml:"max_body"`
	Challenge []Challenge `toml:"challenge"`
	Pairing   *Pairing    `toml:"pairing"`
	Answer    *Answer     `toml:"answer"`
	Encodings []string    `toml:"content_encodings"` // accepted Content-Encoding besides identity: gzip
}

// Challenge is a handshake: when it matches, the answer is given and nothing
// is stored.
type Challenge struct {
	Method  string            `toml:"method"`  // POST where it is left out
	When    map[string]string `toml:"when"`    // place = text it must have; "*" is any text
	Require map[string]string `toml:"require"` // place = template it must be equal to, or the answer is 403
	After   string            `toml:"after"`   // verify or before
	Answer  Answer            `toml:"answer"`
}

// Pairing is how a sender hands its secret over, in a request that nothing
// proves yet. It is taken only while an operator waits for it (creel pair).
type Pairing struct {
	When   map[string]string `toml:"when"`   // place = text it must have; "*" is any text
	Secret string            `toml:"secret"` // place of the secret
	Show   bool              `toml:"show"`   // the operator has to see it, to give it back to the sender
	Answer Answer            `toml:"answer"`
}

// Answer is what a sender gets.
type Answer struct {
	Status int               `toml:"status"`
	Type   string            `toml:"type"`
	Body   string            `toml:"body"`   // a template
	JSON   map[string]string `toml:"json"`   // members of a JSON object, each a template; instead of body
	Header map[string]string `toml:"header"` // further headers, each a template
}
