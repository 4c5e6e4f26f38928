package source

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"iter"
	"net/url"
	"strings"
)

// otherSecrets tries what happens to secrets on their way into a
// configuration. What it says names the form alone.
func (s *Source) otherSecrets(req *Request) iter.Seq[trial] {
	return func(yield func(trial) bool) {
		if !yield(trial{part: PartSecret, src: s, req: req, keys: []key{{}},
			likely: "it is signed with an empty secret",
			next:   "set the secret at the sender"}) {
			return
		}
		for _, k := range s.keys {
			for likely, raw := range s.formsOf(string(k.raw)) {
				other := k
				other.raw = []byte(raw)
				if !yield(trial{part: PartSecret, src: s, req: req, keys: []key{other},
					likely: fmt.Sprintf("it fits secrets[%d] %s", k.index, likely),
					next:   "write the secret as the sender uses it: " + orElse(s.secretForm(), "verify.key says in which form this source takes it")}) {
					return
				}
			}
		}
	}
}

// secretForm is what the preset says about the secret.
func (s *Source) secretForm() string {
	if s.preset == nil {
		return ""
	}
	return s.preset.Secret
}

// formsOf are other forms of a key, each with what has happened to it.
func (s *Source) formsOf(raw string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		give := func(likely, text string) bool { return text == "" || sameText(text, raw) || yield(likely, text) }
		trimmed := strings.TrimSpace(raw)
		if !give("without the blanks or line ends around it", trimmed) ||
			!give("without the quotes around it", strings.Trim(trimmed, `"'`+"`")) ||
			!give("with a line end behind it, which the sender has", raw+"\n") ||
			!give("with a line end (CRLF) behind it, which the sender has", raw+"\r\n") ||
			!give("with a blank behind it, which the sender has", raw+" ") ||
			!give("in lower case", strings.ToLower(raw)) ||
			!give("with its HTML entities read", html.UnescapeString(raw)) {
			return
		}
		if text, err := url.QueryUnescape(raw); err == nil && !give("with its percent escapes read", text) {
			return
		}
		if !s.decodedForms(trimmed, give) {
			return
		}
		for likely, text := range encodedForms(raw) {
			for _, prefix := range append([]string{"", "whsec_"}, s.scheme.rule.strip...) {
				if !give(likely+withPrefix(prefix), prefix+text) {
					return
				}
			}
		}
		for _, prefix := range append([]string{"whsec_"}, s.scheme.rule.strip...) {
			if !give("with the prefix "+prefix+" as a part of it", prefix+raw) {
				return
			}
		}
	}
}

func withPrefix(prefix string) string {
	if prefix == "" {
		return ""
	}
	return ", with the prefix " + prefix
}

// decodedForms are the bytes that a text stands for.
func (s *Source) decodedForms(text string, give func(likely, text string) bool) bool {
	bare := text
	for _, prefix := range append([]string{"whsec_", "v1,whsec_"}, s.scheme.rule.strip...) {
		if rest, ok := strings.CutPrefix(bare, prefix); ok {
			bare = rest
			if !give("without its prefix "+prefix, rest) {
				return false
			}
		}
	}
	unpadded := strings.TrimRight(bare, "=")
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if raw, err := enc.DecodeString(unpadded); err == nil && !give("decoded as base64, which this source takes as text", string(raw)) {
			return false
		}
	}
	if raw, err := hex.DecodeString(bare); err == nil && !give("decoded as hex, which this source takes as text", string(raw)) {
		return false
	}
	return true
}

// encodedForms are the texts that a decoded secret can have been.
func encodedForms(raw string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		data := []byte(raw)
		_ = yield("taken as text, which this source decodes as base64", base64.StdEncoding.EncodeToString(data)) &&
			yield("taken as text, which this source decodes as base64", base64.RawStdEncoding.EncodeToString(data)) &&
			yield("taken as text, which this source decodes as hex", hex.EncodeToString(data))
	}
}
