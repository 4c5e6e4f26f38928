package source

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"creel/event"
)

// Part is the part of a request, or of our configuration, at which its
// verification fails. Its text is what creel verify prints.
type Part string

// The parts.
const (
	PartSecret    Part = "secret"         // signed with another secret than ours
	PartBody      Part = "body"           // other bytes than were signed
	PartEither    Part = "secret or body" // one of these: nothing that was tried tells which
	PartClock     Part = "clock"          // signed outside of the window
	PartTimestamp Part = "timestamp"      // the signed time is not the one that the request names, or can not be read
	PartMissing   Part = "missing part"   // the signature, or something that is signed, is not there
	PartSignature Part = "signature"      // it can not be read
	PartURL       Part = "url"            // signed for another URL than public_url
	PartScheme    Part = "scheme"         // signed in another way than [source.verify] says
	PartSource    Part = "source"         // it is another source's request
	PartID        Part = "id"             // authentic, but without an id of its own
	PartEncoding  Part = "encoding"       // compressed in a way that is not taken
)

// Diagnosis is what was found out about one request. It holds no secret, no
// signature and nothing of the body but the keys of its events.
type Diagnosis struct {
	Source    string    `json:"source"`
	At        time.Time `json:"at"` // the clock that the signed time was compared with
	Verified  bool      `json:"verified"`
	Handshake bool      `json:"handshake,omitempty"` // answered by itself, nothing would be stored
	Cause     Cause     `json:"cause,omitempty"`
	Part      Part      `json:"part,omitempty"`
	Problem   string    `json:"problem,omitempty"` // what fails
	Likely    string    `json:"likely,omitempty"`  // why, as far as trying told
	Next      string    `json:"next,omitempty"`    // what to do
	Tried     []string  `json:"tried,omitempty"`   // what was tried and did not fit
	Secret    int       `json:"secret_index"`      // which secret fits; -1 for none
	SignedAt  time.Time `json:"signed_at,omitzero"`
	// Outside is how far the signed time lies outside of the window, in
	// milliseconds: before it below 0, after it above.
	Outside int64            `json:"outside_ms,omitempty"`
	Events  []DiagnosedEvent `json:"events,omitempty"`
	Notes   []string         `json:"notes,omitempty"`
}

// DiagnosedEvent is an event that a verified request holds.
type DiagnosedEvent struct {
	Key   event.Key `json:"key"`
	Type  string    `json:"type"`
	Error string    `json:"error,omitempty"` // why it would be stored dead
}

// Diagnose verifies a request as Receive would have done at a time, and where
// it fails looks for the reason: it tries what usually goes wrong on the way,
// with the secret and with the scheme. others are the other sources of the
// configuration, whose secrets are tried too. It costs far more than Receive
// and is for requests that an operator asks about.
func (s *Source) Diagnose(req *Request, at time.Time, others []*Source) Diagnosis {
	d := Diagnosis{Source: s.name, At: at, Secret: -1}
	result := s.Receive(req, at)
	if !result.Refused() {
		d.accepted(s, result)
		return d
	}
	d.Cause, d.Problem = result.Cause, result.Detail
	switch result.Cause {
	case MissingSignature:
		d.unsigned(s, req, others)
	case MalformedSignature:
		d.unreadable(s, req)
	case MissingPart, MalformedPart, Unequal:
		d.incomplete(s, req)
	case MalformedTimestamp:
		d.Part, d.Next = PartTimestamp, "verify.unit says how the sender writes it: s, ms or rfc3339"
	case TooOld, TooNew:
		d.late(s, req)
	case NoSecret:
		d.Part, d.Next = PartSecret, "set secrets in the configuration, then creel reload"
	case UnsupportedEncoding:
		d.Part, d.Next = PartEncoding, `verify.content_encodings = ["gzip"], where the sender compresses`
	case TooLarge:
		d.Part, d.Next = PartEncoding, "max_body is the cap of the source"
	case WrongSignature, WrongBodyHash:
		d.mismatch(s, req, others)
	}
	d.note(s, req)
	return d
}

// accepted tells what a verified request would have come to.
func (d *Diagnosis) accepted(s *Source, r Result) {
	d.Verified, d.Secret = true, r.SecretIndex
	if r.Answer != nil {
		d.Handshake = true
		d.Notes = append(d.Notes, fmt.Sprintf("it is a handshake: it is answered with %d and nothing is stored", r.Answer.Status))
		return
	}
	if r.Skipped > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d of its events are of the other mode (test or live) and leave no row", r.Skipped))
	}
	for _, item := range r.Items {
		d.Events = append(d.Events, DiagnosedEvent{Key: item.Key, Type: item.Type, Error: item.Error})
		if item.State != event.Dead || d.Part != "" {
			continue
		}
		d.Part, d.Problem = PartID, item.Error
		d.Next = "verify.id says where the id stands; until then such events are stored dead and answered 200"
	}
	switch s.scheme.integrity {
	case Partial:
		d.Notes = append(d.Notes, "the signature covers only a part of the body: the rest of it is not proved")
	case None:
		d.Notes = append(d.Notes, "nothing proves the body: whoever knows the URL, and what is sent with it, can write any")
	}
}

// late says how far outside of the window the signed time lies. The signature
// fits: the scheme looks at times last.
func (d *Diagnosis) late(s *Source, req *Request) {
	d.Part = PartClock
	signedAt, ok := s.signedAt(req)
	if !ok { // a claim of a JWT
		d.Next = "--at TIME judges it at the time at which it came; else compare the clocks"
		return
	}
	d.SignedAt = signedAt.UTC()
	w := s.scheme.window
	age := d.At.Sub(signedAt)
	outside := -(age - w.late)
	side := "late"
	if d.Cause == TooNew {
		outside, side = -age-w.early, "early"
	}
	d.Outside = outside.Milliseconds()
	if d.Cause == TooOld {
		d.Problem = fmt.Sprintf("it was signed %s before the time of the check; the window is %s, so it is %s too old", roughly(age), w.late, roughly(-outside))
	} else {
		d.Problem = fmt.Sprintf("it was signed %s after the time of the check; the window is %s, so it is %s too new", roughly(-age), w.early, roughly(outside))
	}
	d.Likely = "the signature fits: only the clock refuses it"
	switch {
	case signedAt.Year() > 2200 || signedAt.Year() < 2000:
		d.Part, d.Likely = PartTimestamp, fmt.Sprintf("a signed time in the year %d looks like another unit", signedAt.Year())
		d.Next = "verify.unit says how the sender writes it: s, ms or rfc3339"
	case d.Cause == TooOld:
		d.Next = "--at TIME judges it at the time at which it came. If it was late then: it was sent again, or waited somewhere, or a clock is wrong (timedatectl); verify." + side + " widens the window"
	default:
		d.Next = "compare this machine's clock (timedatectl) and the time given with --at; verify." + side + " widens the window"
	}
}

// signedAt reads the signed time of a request whose signature fits.
func (s *Source) signedAt(req *Request) (time.Time, bool) {
	v, why := s.open(req)
	if why != nil || len(s.scheme.timestamp) == 0 || s.scheme.auth == "jwt-hs256" || !s.scheme.each.IsZero() {
		return time.Time{}, false
	}
	if _, why := s.scheme.sig.read(v); why != nil {
		return time.Time{}, false
	}
	at, why := s.scheme.readTime(v)
	return at, why == nil
}

// roughly writes a duration as people say it.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = d.Abs(); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 3*day:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return strconv.Itoa(int(d/day)) + " days"
}

// note adds what can be seen without a key.
func (d *Diagnosis) note(s *Source, req *Request) {
	if text := req.Header.Get("Content-Length"); text != "" && req.Header.Get("Content-Encoding") == "" {
		if n, err := strconv.Atoi(text); err == nil && n != len(req.Body) {
			d.Notes = append(d.Notes, fmt.Sprintf("Content-Length says %d bytes and the body has %d: the capture is not whole, or something changed the body", n, len(req.Body)))
			if d.Part == PartEither {
				d.Part = PartBody
				d.Likely = "the body does not have the length that the sender gave it"
			}
		}
	}
	if req.Method != http.MethodPost {
		d.Notes = append(d.Notes, "only a POST carries events, and this is a "+strconv.Quote(req.Method))
	}
	if d.Part == PartEither && strings.Contains(string(req.Body), "\ufffd") {
		d.Notes = append(d.Notes, "the body has replacement characters (U+FFFD): something read it in the wrong charset on the way")
	}
}
