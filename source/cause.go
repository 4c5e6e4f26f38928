package source

// Cause is why a request was refused. Its text is the metric label and what
// the drawer of rejected requests shows; the sender never learns it.
type Cause string

// The causes of a refusal. "" is none.
const (
	MissingSignature    Cause = "missing_signature"    // no signature where the scheme has it
	MalformedSignature  Cause = "malformed_signature"  // it can not be read, or the header came twice
	WrongSignature      Cause = "wrong_signature"      // it was made with another secret or over other bytes
	MissingPart         Cause = "missing_part"         // something that is signed or needed is not there
	MalformedPart       Cause = "malformed_part"       // something that is signed can not be read, or came twice
	Unequal             Cause = "unequal_part"         // a part is not what the scheme demands
	WrongBodyHash       Cause = "wrong_body_hash"      // the signed hash is that of another body
	MalformedTimestamp  Cause = "malformed_timestamp"  // not a time in the scheme's unit
	TooOld              Cause = "too_old"              // signed longer ago than the window
	TooNew              Cause = "too_new"              // signed in our future
	NoSecret            Cause = "no_secret"            // the source waits for its secret: 503
	UnsupportedEncoding Cause = "unsupported_encoding" // Content-Encoding: 415
	TooLarge            Cause = "too_large"            // over the cap, as it came or inflated: 413
)

// Causes lists every cause, for metrics that exist before their first count.
func Causes() []Cause {
	return []Cause{MissingSignature, MalformedSignature, WrongSignature, MissingPart, MalformedPart,
		Unequal, WrongBodyHash, MalformedTimestamp, TooOld, TooNew, NoSecret, UnsupportedEncoding, TooLarge}
}

// Unverified tells whether a request was refused for how it was sent, before
// anything was said of its sender.
func (c Cause) Unverified() bool { return c == UnsupportedEncoding || c == TooLarge }

// refusal is a cause with what an operator should know. It never holds a
// secret, a signature or anything of the body.
type refusal struct {
	cause  Cause
	detail string
}

func refuse(cause Cause, detail string) *refusal { return &refusal{cause: cause, detail: detail} }
