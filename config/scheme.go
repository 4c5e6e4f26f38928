package config

// Scheme is the language in which presets and owners describe a sender: how
// its requests are verified and where its identities stand. Places are paths
// of the one path language: body.data.id, header.x-foo, query.x, form.x.
type Scheme struct {
	// verification
	Auth      string     `toml:"auth"`      // hmac-sha1, hmac-sha256, hmac-sha512, ed25519, ecdsa-p256, token, basic, none, …
	Key       string     `toml:"key"`       // how a secret becomes the key: utf8, base64, hex, …
	Strip     []string   `toml:"strip"`     // prefixes cut off the secret, in order
	Signature StringList `toml:"signature"` // where the signature stands; the first header present counts
	List      string     `toml:"list"`      // element separator of a signature list
	Pair      string     `toml:"pair"`      // separator between label and value inside an element
	Take      string     `toml:"take"`      // label of the elements that count
	Encoding  string     `toml:"encoding"`  // hex, base64, base64url
	Signed    string     `toml:"signed"`    // template of the signed content
	Timestamp StringList `toml:"timestamp"`
	Unit      string     `toml:"unit"` // s, ms, rfc3339
	Late      *Duration  `toml:"late"`
	Early     *Duration  `toml:"early"`
	Need      []string   `toml:"need"` // places that must be present
	Integrity string     `toml:"integrity"`

	// identity
	ID       StringList `toml:"id"` // parts, joined; or one template
	Type     StringList `toml:"type"`
	Account  StringList `toml:"account"`
	Object   StringList `toml:"object"`
	Version  StringList `toml:"version"`
	Live     string     `toml:"live"`     // place of the live/test flag
	Volatile []string   `toml:"volatile"` // places that differ between deliveries of one event
	Split    string     `toml:"split"`    // place of the array whose elements are the events
	Unwrap   string     `toml:"unwrap"`   // place of the JSON text inside a form body

	MaxBody   *Size       `toml:"max_body"`
	Challenge []Challenge `toml:"challenge"`
	Answer    *Answer     `toml:"answer"`
	Encodings []string    `toml:"content_encodings"` // accepted Content-Encoding besides identity
}

// Challenge is a handshake: when it matches, the answer is given and nothing
// is stored.
type Challenge struct {
	Method string            `toml:"method"`
	When   map[string]string `toml:"when"`  // place = text it must have
	After  string            `toml:"after"` // verify or before
	Answer Answer            `toml:"answer"`
}

// Answer is what a sender gets.
type Answer struct {
	Status int    `toml:"status"`
	Type   string `toml:"type"`
	Body   string `toml:"body"` // a template
}
