package source

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// unsigned says which signature is missing, and whose is there instead.
func (d *Diagnosis) unsigned(s *Source, req *Request, others []*Source) {
	d.Part = PartMissing
	d.Problem = "no signature: nothing stands at " + s.scheme.sig.where()
	if title := knownSender(req.Header, s.provider); title != "" {
		d.Part, d.Likely = PartSource, "its headers are those of "+title
		d.Next = "it belongs to another source: correct the URL at the sender, or the provider of this source"
		for _, other := range others {
			if other != s && !other.Receive(req, d.At).Refused() {
				d.Likely += fmt.Sprintf(", and it verifies as the source %q", other.name)
				break
			}
		}
		return
	}
	for _, p := range s.scheme.sig.places {
		if near := likeName(req.Header, p.name); near != "" {
			d.Likely = fmt.Sprintf("it has the header %s, which this scheme does not look at", near)
		}
	}
	d.Next = "see whether a secret is set at the sender, which signs nothing without one, and whether a proxy drops the header; a request without a signature may also be nobody's"
}

// knownSender is the title of a known sender, other than own, whose signature
// header is there.
func knownSender(header http.Header, own string) string {
	for _, preset := range Presets() {
		if preset.Name == own || preset.Name == "svix" || preset.Name == "standard-webhooks" {
			continue // their headers are those of many senders
		}
		for _, text := range preset.Scheme.Signature {
			name, ok := strings.CutPrefix(text, "header.")
			if ok && !strings.EqualFold(name, "Authorization") && header.Get(name) != "" {
				return preset.Title
			}
		}
	}
	return ""
}

// likeName finds a header with a name much like the wanted one: another
// version or spelling of it.
func likeName(header http.Header, wanted string) string {
	letters := func(text string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r
			}
			return -1
		}, strings.ToLower(text))
	}
	want := letters(wanted)
	for _, name := range sortedKeys(header) {
		have := letters(name)
		if wanted == "" || strings.EqualFold(name, wanted) || len(have) < 6 {
			continue
		}
		if strings.Contains(have, want) || strings.Contains(want, have) || strings.TrimPrefix(have, "x") == strings.TrimPrefix(want, "x") {
			return name
		}
	}
	return ""
}

// unreadable says how the signature is written, where that can be seen.
func (d *Diagnosis) unreadable(s *Source, req *Request) {
	d.Part, d.Next = PartSignature, "compare the header with what the sender's documentation shows; [source.verify] says how this source reads it"
	for _, p := range s.scheme.sig.places {
		if p.kind == inHeader && len(req.Header[p.name]) > 1 && !s.scheme.sig.repeat {
			d.Problem = "the header " + p.name + " came twice: which one counts would be a guess"
			d.Next = "a proxy may add a second one; verify.repeat = true takes several, where the sender sends several"
			return
		}
	}
	if s.scheme.auth == "jwt-hs256" {
		d.Likely = "what stands there is no JSON Web Token signed with HS256"
		return
	}
	texts := s.scheme.sig.written(&view{src: s, req: req})
	if len(texts) == 0 {
		if s.scheme.sig.take != "" {
			d.Likely = fmt.Sprintf("the signature has to be labelled %q, followed by %q", s.scheme.sig.take, s.scheme.sig.pair)
		}
		return
	}
	for _, other := range []encoding{encHex, encBase64, encBase64Raw, encURL, encURLPadded} {
		if raw, ok := other.decode(texts[0]); ok && other != s.scheme.sig.enc && slices.Contains(sizesOf(s.scheme.auth), len(raw)) {
			d.Likely = fmt.Sprintf("it reads as %s, and this source wants %s", other, s.scheme.sig.enc)
			d.Next = fmt.Sprintf("verify.encoding = %q, where the sender writes it so", other)
			return
		}
	}
	d.Likely = fmt.Sprintf("it has %d characters that are no %s: it may be cut off, or be of another kind", len(texts[0]), s.scheme.sig.enc)
}

// sizesOf are the lengths that a signature of a scheme has, in bytes.
func sizesOf(auth string) []int {
	switch auth {
	case "hmac-sha1", "hmac-sha256", "hmac-sha512":
		return []int{hashOf(auth)().Size()}
	case "ed25519":
		return []int{64}
	}
	return nil
}

// written are the candidates as they are written, whether they can be read or
// not.
func (s *signatures) written(v *view) []string {
	texts, why := s.texts(v)
	if why != nil {
		return nil
	}
	var out []string
	for _, text := range texts {
		for _, element := range s.elements(text) {
			if one, ok := s.candidate(v, element); ok {
				out = append(out, one)
			}
		}
	}
	return out
}

// incomplete says what the scheme needs beside the signature.
func (d *Diagnosis) incomplete(s *Source, req *Request) {
	switch d.Cause {
	case MissingPart:
		d.Part = PartMissing
		d.Next = "see whether a proxy drops it, and whether the request is of this sender at all"
		if title := knownSender(req.Header, s.provider); title != "" {
			d.Likely = "its headers are those of " + title
		}
	case MalformedPart:
		d.Part = PartSignature
		d.Next = "what is signed can not be read, so nothing is proved: compare it with the sender's documentation"
	case Unequal:
		d.Part = PartScheme
		d.Next = "verify.equal says what has to be equal; a URL is that of public_url"
	}
}
