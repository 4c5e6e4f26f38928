package source

import (
	"crypto/hmac"
	"encoding/json"
	"strings"

	"creel/config"
)

// Answer is what a sender gets for a handshake.
type Answer struct {
	Status int
	Type   string // Content-Type; "" for none
	Header map[string]string
	Body   string
}

// challenge is a handshake, compiled.
type challenge struct {
	method  string
	when    []condition
	require []equality
	after   string
	status  int
	kind    string
	body    template
	json    map[string]template
	header  map[string]template
}

// condition is a place and the text that it must have; "*" is any text.
type condition struct {
	place place
	text  string
}

func (c *compiler) challenge(key string, in config.Challenge) challenge {
	out := challenge{
		method: strings.ToUpper(orElse(in.Method, "POST")),
		after:  c.oneOf(key+".after", orElse(in.After, "verify"), []string{"verify", "before"}),
		status: orStatus(in.Answer.Status),
		kind:   in.Answer.Type,
		json:   map[string]template{},
		header: map[string]template{},
	}
	if len(in.When) == 0 {
		c.fault(key+".when", "says not when the handshake is meant", `such as when = { "body.type" = "url_verification" }`)
	}
	if out.method != "POST" && out.after == "verify" {
		c.fault(key+".after", "only a POST is verified", `after = "before"`)
	}
	for _, text := range sortedKeys(in.When) {
		out.when = append(out.when, condition{place: c.place(key+".when", text, nil), text: in.When[text]})
	}
	for _, text := range sortedKeys(in.Require) {
		out.require = append(out.require, equality{
			place: c.place(key+".require", text, nil),
			want:  c.answerText(key+".require", in.Require[text]),
		})
	}
	out.body = c.answerText(key+".answer.body", in.Answer.Body)
	for name, text := range in.Answer.JSON {
		out.json[name] = c.answerText(key+".answer.json", text)
	}
	for name, text := range in.Answer.Header {
		out.header[name] = c.answerText(key+".answer.header", text)
	}
	return out
}

// answerText compiles a template that may also use an HMAC, written
// {hmac-sha256-hex:PLACE}, of what stands at a place.
func (c *compiler) answerText(key, text string) template {
	t, err := parseTemplate(text, false, func(inside string) (place, error) {
		function, rest, ok := strings.Cut(inside, ":")
		if !ok || !isMAC(function) {
			return parsePlace(inside, nil, c.settings)
		}
		auth, enc, ok := cutLast(function, "-")
		inner, err := parsePlace(rest, nil, c.settings)
		if ok {
			c.oneOf(key, enc, encodings())
			c.oneOf(key, auth, []string{"hmac-sha1", "hmac-sha256", "hmac-sha512"})
		}
		return place{kind: inDigest, text: inside, digest: &digest{auth: auth, enc: encoding(enc), place: inner}}, err
	})
	if err != nil {
		c.fault(key, err.Error(), exampleHint)
	}
	return t
}

func cutLast(text, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

// digest answers with the first secret: it is the one that the sender knows
// while a handshake is made.
func (v *view) digest(d *digest) (found, error) {
	at, err := v.look(d.place)
	if err != nil || !at.ok || len(v.src.keys) == 0 {
		return found{}, err
	}
	sum := content{[]byte(at.text)}.sum(hmac.New(hashOf(d.auth), v.src.keys[0].raw))
	return textFound(d.enc.encode(sum)), nil
}

// handshake is the answer to the first challenge that matches, or nil.
func (s *Source) handshake(v *view, after string) *Answer {
	for _, c := range s.scheme.challenges {
		if c.after != after || c.method != v.req.Method || !c.matches(v) {
			continue
		}
		for _, demand := range c.require {
			if !demand.holds(v) {
				return &Answer{Status: 403}
			}
		}
		if answer, ok := c.answer(v); ok {
			return answer
		}
	}
	return nil
}

func (c challenge) matches(v *view) bool {
	for _, demand := range c.when {
		at, err := v.look(demand.place)
		if err != nil || !at.ok || at.text == "" {
			return false
		}
		if demand.text != "*" && at.text != demand.text {
			return false
		}
	}
	return true
}

func (c challenge) answer(v *view) (*Answer, bool) {
	out := &Answer{Status: c.status, Type: c.kind}
	body, ok, err := v.render(c.body, true, false)
	if err != nil || !ok && len(c.body.pieces) > 0 {
		return nil, false
	}
	out.Body = body
	if len(c.json) > 0 {
		members := make(map[string]string, len(c.json))
		for name, t := range c.json {
			text, ok, err := v.render(t, true, false)
			if err != nil || !ok {
				return nil, false
			}
			members[name] = text
		}
		text, err := json.Marshal(members)
		if err != nil {
			return nil, false
		}
		out.Body = string(text)
	}
	for name, t := range c.header {
		text, ok, err := v.render(t, true, false)
		if err != nil || !ok || strings.ContainsAny(text, "\r\n") {
			return nil, false
		}
		if out.Header == nil {
			out.Header = map[string]string{}
		}
		out.Header[name] = text
	}
	return out, true
}
