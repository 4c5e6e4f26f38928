package source

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"creel/path"
)

// verify proves that the request, or each item of it, was signed with one of
// the keys. It gives the index of the configured secret that fits, -1 where
// the scheme has none.
func (s *scheme) verify(v *view, keys []key, now time.Time) (int, *refusal) {
	if s.auth == "none" {
		return -1, nil
	}
	if s.each.IsZero() {
		return s.verifyOne(v, keys, now)
	}
	elements, missed, err := v.doc.Each(s.each)
	if err != nil {
		return -1, refuse(MalformedPart, err.Error())
	}
	if missed > 0 {
		return -1, refuse(MissingPart, "an item has nothing at "+s.each.String())
	}
	if len(elements) == 0 {
		return -1, refuse(MissingSignature, "nothing stands at "+s.each.String())
	}
	if len(elements) > maxEvents {
		return -1, refuse(MalformedPart, "too many signed items")
	}
	index := -1
	for i, element := range elements {
		item := *v
		item.doc, item.labels = v.doc.Of(element), nil
		matched, why := s.verifyOne(&item, keys, now)
		if why != nil {
			return -1, why
		}
		if i == 0 {
			index = matched
		}
	}
	return index, nil
}

// verifyOne checks the signature before anything that depends on what the
// request says: a cause such as too old is only given to what is authentic.
func (s *scheme) verifyOne(v *view, keys []key, now time.Time) (int, *refusal) {
	candidates, why := s.sig.read(v)
	if why != nil {
		return -1, why
	}
	if why := s.needed(v); why != nil {
		return -1, why
	}
	signedAt, why := s.readTime(v)
	if why != nil {
		return -1, why
	}
	keys, why = s.named(v, keys)
	if why != nil {
		return -1, why
	}
	index, why := s.match(v, keys, candidates)
	if why != nil {
		return -1, why
	}
	if why := s.equalParts(v); why != nil {
		return -1, why
	}
	if why := s.hashedBody(v); why != nil {
		return -1, why
	}
	if s.auth == "jwt-hs256" {
		if why := claimTimes(v, now); why != nil {
			return -1, why
		}
		if signedAt, why = s.readTime(v); why != nil {
			return -1, why
		}
	}
	if len(s.timestamp) == 0 {
		return index, nil
	}
	return index, s.window.check(signedAt, now)
}

// match tries every form of the signed content with every key.
func (s *scheme) match(v *view, keys []key, candidates []candidate) (int, *refusal) {
	if s.auth == "jwt-hs256" {
		v.url = v.src.publicURL // the audience is what was registered
		return matchJWT(v, keys, candidates)
	}
	index := -1
	for _, form := range s.urls(v.src.publicURL, v.req.Query) {
		v.url = form
		signed, why := s.content(v)
		if why != nil {
			return -1, why
		}
		for _, k := range keys {
			if matches(s.auth, k, signed, candidates) && index < 0 {
				index = k.index
			}
		}
	}
	if index >= 0 {
		return index, nil
	}
	detail := "no signature fits any secret: another secret, or other bytes than were signed"
	if s.usesURL() {
		detail += "; the signed URL was taken to be " + withoutUser(v.url)
	}
	return -1, refuse(WrongSignature, detail)
}

// withoutUser leaves the user and password of a URL out of what people see.
func withoutUser(full string) string {
	protocol, rest, ok := strings.Cut(full, "://")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	if i := strings.LastIndexByte(rest[:end], '@'); ok && i >= 0 {
		return protocol + "://" + rest[i+1:]
	}
	return full
}

// content renders the signed template. A member of the body that is not there
// renders as nothing (Adyen signs so); anything else must be there.
func (s *scheme) content(v *view) (content, *refusal) {
	out := make(content, 0, len(s.signed.pieces))
	for _, p := range s.signed.pieces {
		switch {
		case p.isLiteral():
			out = append(out, []byte(p.literal))
			continue
		case p.place.kind == inWord && p.place.name == "body":
			out = append(out, v.signed)
			continue
		}
		at, err := v.look(p.place)
		if err != nil {
			return nil, refuse(MalformedPart, placed(p.place, err).Error())
		}
		if !at.ok && !p.place.optional && p.place.kind != inRequest {
			return nil, refuse(MissingPart, "nothing stands at "+p.place.text)
		}
		out = append(out, []byte(at.text))
	}
	return out, nil
}

// needed looks for what must be there and sets the words ts and id.
func (s *scheme) needed(v *view) *refusal {
	for _, alternatives := range s.need {
		text, ok, err := v.first(alternatives, false, false)
		if err != nil {
			return refuse(MalformedPart, err.Error())
		}
		if !ok || text == "" {
			return refuse(MissingPart, "nothing stands at "+alternatives[0].text)
		}
	}
	if !s.signed.has("id") {
		return nil
	}
	id, ok, err := v.first(s.id, true, false)
	if err != nil {
		return refuse(MalformedPart, err.Error())
	}
	if !ok {
		return refuse(MissingPart, "nothing stands at "+s.id[0].text)
	}
	v.setWord("id", id)
	return nil
}

// readTime reads the signed time, before the signature is checked because its
// text may be signed. The claims of a JWT are not known then: no time yet.
func (s *scheme) readTime(v *view) (time.Time, *refusal) {
	if len(s.timestamp) == 0 || s.auth == "jwt-hs256" && v.claims == nil {
		return time.Time{}, nil
	}
	text, ok, err := v.first(s.timestamp, false, false)
	if err != nil {
		return time.Time{}, refuse(MalformedTimestamp, err.Error())
	}
	if !ok {
		return time.Time{}, refuse(MissingPart, "no timestamp stands at "+s.timestamp[0].text)
	}
	signedAt, ok := s.window.parse(text)
	if !ok {
		return time.Time{}, refuse(MalformedTimestamp, s.timestamp[0].text+" is no time in "+string(s.window.unit))
	}
	v.setWord("ts", text)
	return signedAt, nil
}

// named keeps the keys that the request names, where the scheme has names.
func (s *scheme) named(v *view, keys []key) ([]key, *refusal) {
	if s.keyBy.kind == 0 {
		return keys, nil
	}
	at, err := v.look(s.keyBy)
	if err != nil || !at.ok {
		return nil, refuse(MissingPart, "nothing names the key at "+s.keyBy.text)
	}
	var out []key
	for _, k := range keys {
		if sameText(k.name, at.text) {
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return nil, refuse(WrongSignature, "no secret has the name that stands at "+s.keyBy.text)
	}
	return out, nil
}

// equality is a place and what it must be.
type equality struct {
	place place
	want  template
}

func (s *scheme) equalParts(v *view) *refusal {
	for _, e := range s.equal {
		if !e.holds(v) {
			return refuse(Unequal, e.place.text+" is not what the scheme demands")
		}
	}
	return nil
}

// holds compares text; of an array (the audience of a JWT) one element must be
// equal.
func (e equality) holds(v *view) bool {
	want, ok, err := v.render(e.want, true, false)
	if err != nil || !ok {
		return false
	}
	at, err := v.look(e.place)
	if err != nil || !at.ok {
		return false
	}
	if at.kind != path.Array {
		return sameText(at.text, want)
	}
	var list []string
	if json.Unmarshal([]byte(at.text), &list) != nil {
		return false
	}
	return slices.ContainsFunc(list, func(one string) bool { return sameText(one, want) })
}

// hashedBody compares the body with the hash of it that the signature covers.
func (s *scheme) hashedBody(v *view) *refusal {
	if s.bodyHash.kind == 0 {
		return nil
	}
	at, err := v.look(s.bodyHash)
	if err != nil {
		return refuse(MalformedPart, placed(s.bodyHash, err).Error())
	}
	if !at.ok || at.text == "" {
		return refuse(MissingPart, "no hash of the body stands at "+s.bodyHash.text)
	}
	want, ok := s.bodyHashEnc.decode(at.text)
	if !ok {
		return refuse(MalformedPart, s.bodyHash.text+" is not written as "+string(s.bodyHashEnc))
	}
	sum := sha256.Sum256(v.signed)
	if !sameBytes(sum[:], want) {
		return refuse(WrongBodyHash, "the body is not the one whose hash was signed")
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
