package source

import (
	"errors"
	"fmt"
	"maps"

	"creel/config"
)

// pairing is how a sender hands its secret over, compiled.
type pairing struct {
	challenge challenge
	secret    place
	show      bool
}

func (c *compiler) pairing(in *config.Pairing) *pairing {
	if in == nil {
		return nil
	}
	const key = ".verify.pairing"
	if in.Secret == "" {
		c.fault(key+".secret", "says not where the secret stands", `such as "header.X-Hook-Secret"`)
		return nil
	}
	when := map[string]string{in.Secret: "*"}
	maps.Copy(when, in.When)
	return &pairing{
		challenge: c.challenge(key, config.Challenge{When: when, After: "before", Answer: in.Answer}),
		secret:    c.place(key+".secret", in.Secret, nil),
		show:      in.Show,
	}
}

// pairHint is what to do about a secret that the sender hands over itself.
func (c *compiler) pairHint(s *Source) string {
	if s.scheme == nil || s.scheme.pairing == nil {
		return ""
	}
	return ", and then creel pair " + s.name
}

// Offer is a secret that a sender hands over.
type Offer struct {
	Secret []byte
	Show   bool // the operator has to see it, to give it back to the sender
	Answer Answer
}

// Pairs tells whether the sender hands its secret over in a request.
func (s *Source) Pairs() bool { return s.scheme.pairing != nil }

// errUnusable says that what was handed over can not be a secret.
var errUnusable = errors.New("what was handed over can not be a secret")

// Offer is what a request hands over; false where it is an ordinary one.
// Nothing proves who sent it: it is for an operator who waits for it. The error
// says why what was handed over can not be the source's secret, without it.
func (s *Source) Offer(req *Request) (Offer, bool, error) {
	p := s.scheme.pairing
	if p == nil || req.Method != p.challenge.method {
		return Offer{}, false, nil
	}
	v, why := s.open(req)
	if why != nil || !p.challenge.matches(v) {
		return Offer{}, false, nil
	}
	at, err := v.look(p.secret)
	if err != nil || !at.ok {
		return Offer{}, false, nil
	}
	keys, err := s.scheme.rule.keys([]byte(at.text), 0)
	if err != nil {
		return Offer{}, true, fmt.Errorf("%w: it %w", errUnusable, err)
	}
	for _, k := range keys {
		if k.weak() {
			return Offer{}, true, fmt.Errorf("%w: it %w", errUnusable, errShortKey)
		}
	}
	answer, ok := p.challenge.answer(v)
	if !ok {
		return Offer{}, true, fmt.Errorf("%w: there is no answer to it", errUnusable)
	}
	return Offer{Secret: []byte(at.text), Show: p.show, Answer: *answer}, true, nil
}

// handedAgain is the answer to a sender that hands over the secret that we
// have: its first answer was lost. Who knows the secret has proved itself.
func (s *Source) handedAgain(req *Request) *Answer {
	offer, ok, err := s.Offer(req)
	if !ok || err != nil {
		return nil
	}
	keys, err := s.scheme.rule.keys(offer.Secret, 0)
	if err != nil {
		return nil
	}
	known := false
	for _, k := range s.keys {
		for _, other := range keys {
			known = k.same(other) || known
		}
	}
	if !known {
		return nil
	}
	return &offer.Answer
}
