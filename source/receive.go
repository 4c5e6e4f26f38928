package source

import (
	"crypto/sha256"
	"strings"
	"time"

	"creel/event"
	"creel/path"
)

// Result is what a request came to: refused (Cause), answered (Answer), or
// accepted with its events.
type Result struct {
	// Cause is why the request was refused; "" where it was not. Detail says
	// it to the operator, without anything of the body or of a secret.
	Cause  Cause
	Detail string

	// Answer is a handshake's answer: nothing is stored.
	Answer *Answer

	// SecretIndex says which configured secret fits; -1 where the scheme has none.
	SecretIndex int
	// Items are the events. None of them where Skipped are all of them, or
	// where the sender sent an empty list.
	Items []event.Item
	// Skipped counts the events of the other mode (test or live), which leave
	// no row so that their ids can come again in the right one.
	Skipped int
	// Body is what is kept: the request's own bytes, inflated where they were
	// compressed.
	Body []byte
	// BodyKey is the SHA-256 of Body, a second key for BodyWindow; 0 is never.
	BodyKey    [32]byte
	BodyWindow time.Duration
	// Reply is the body and type that the sender wants with the success.
	Reply *Answer
}

// Refused tells whether the request is not from the sender.
func (r Result) Refused() bool { return r.Cause != "" }

func refused(why *refusal) Result {
	return Result{Cause: why.cause, Detail: why.detail, SecretIndex: -1}
}

// Receive verifies a request and finds its events. now is the clock that
// signed times are compared with.
func (s *Source) Receive(req *Request, now time.Time) Result {
	v, why := s.open(req)
	if why != nil {
		return refused(why)
	}
	if answer := s.handshake(v, "before"); answer != nil {
		return Result{Answer: answer, SecretIndex: -1}
	}
	if s.awaiting {
		return refused(refuse(NoSecret, "the source waits for its secret"))
	}
	if s.Pairs() {
		if answer := s.handedAgain(req); answer != nil {
			return Result{Answer: answer, SecretIndex: -1}
		}
	}
	index, why := s.scheme.verify(v, s.keys, now)
	if why != nil {
		return refused(why)
	}
	if answer := s.handshake(v, "verify"); answer != nil {
		return Result{Answer: answer, SecretIndex: index}
	}
	items, skipped := s.events(v)
	r := Result{SecretIndex: index, Items: items, Skipped: skipped, Body: v.body, Reply: s.reply()}
	if s.bodyWindow > 0 {
		r.BodyKey, r.BodyWindow = sha256.Sum256(v.body), s.bodyWindow
	}
	return r
}

// Probe answers a GET or HEAD: a handshake's answer, or nothing, which the
// receiver answers as it is configured.
func (s *Source) Probe(req *Request) (Answer, bool) {
	if req.Method == "HEAD" {
		return Answer{}, false
	}
	v, why := s.open(&Request{Method: req.Method, Query: req.Query, Header: req.Header})
	if why != nil {
		return Answer{}, false
	}
	answer := s.handshake(v, "before")
	if answer == nil {
		return Answer{}, false
	}
	return *answer, true
}

// open makes the view of a request: inflated, and with what body means.
func (s *Source) open(req *Request) (*view, *refusal) {
	body, why := s.inflate(req)
	if why != nil {
		return nil, why
	}
	v := &view{src: s, req: req, body: body, raw: body, signed: body}
	if !s.scheme.plainSigned {
		v.signed = req.Body
	}
	payload := event.Payload{Body: body, Query: req.Query}
	if formEncoded(req.Header.Get("Content-Type")) {
		switch {
		case !s.scheme.unwrap.IsZero() && s.wrapped(payload):
			payload.Part = s.scheme.unwrap.String()
		case s.scheme.readsForm:
			v.form = true
		}
	}
	v.doc = path.NewDocument(payload)
	return v, nil
}

// wrapped tells whether the form has the field that holds the event. A source
// that reads other fields too takes a form without it as the event itself.
func (s *Source) wrapped(payload event.Payload) bool {
	if !s.scheme.readsForm {
		return true
	}
	_, ok, err := path.NewDocument(payload).Get(s.scheme.unwrap)
	return ok || err != nil
}

func formEncoded(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded")
}

func (s *Source) reply() *Answer {
	a := s.scheme.answer
	if a == nil {
		return nil
	}
	return &Answer{Status: orStatus(a.Status), Type: a.Type, Body: a.Body}
}

func orStatus(status int) int {
	if status == 0 {
		return 200
	}
	return status
}
