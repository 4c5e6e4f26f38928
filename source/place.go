package source

import (
	"fmt"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"creel/path"
)

// placeKind says what a place reads.
type placeKind uint8

const (
	inRequest placeKind = iota + 1 // a body, query or form path
	inHeader
	inHeaders // header.x-#: that header with every number
	inLabel   // sig.LABEL
	inClaim   // claim.NAME
	fixed     // const.TEXT and setting.NAME
	inWord    // a word such as body, url, ts
	inDigest  // hmac-sha256-hex:PLACE, in answers
)

// maxNumbered is how many headers header.x-# stands for (DocuSign Connect
// signs with up to a hundred keys).
const maxNumbered = 100

// place is one place of a scheme, compiled.
type place struct {
	kind     placeKind
	text     string // as written
	name     string // canonical header, label, word, or the fixed text
	names    []string
	path     path.Path
	optional bool
	digest   *digest
}

// digest is a function of an answer: an HMAC of what stands at a place.
type digest struct {
	auth  string
	enc   encoding
	place place
}

// signedWords are the words of what is signed.
func signedWords() []string {
	return []string{"body", "url", "method", "path", "ts", "id", "form_sorted"}
}

// identityWords are the words of an event's id.
func identityWords() []string {
	return []string{"type", "object", "version", "account", "receipt", "body-sha256"}
}

// parsePlace reads one place. words are those that may stand here.
func parsePlace(text string, words []string, settings map[string]string) (place, error) {
	plain, optional := strings.CutSuffix(text, "?")
	p := place{text: plain, optional: optional}
	root, rest, dotted := strings.Cut(plain, ".")
	switch {
	case slices.Contains(words, plain):
		p.kind, p.name = inWord, plain
		return p, nil
	case dotted && root == "sig":
		p.kind, p.name = inLabel, rest
		return p, nil
	case dotted && root == "const":
		p.kind, p.name = fixed, rest
		return p, nil
	case dotted && root == "setting":
		value, ok := settings[rest]
		if !ok {
			return p, fmt.Errorf("%s is used and not set; write it under [source.settings]", plain)
		}
		p.kind, p.name = fixed, value
		return p, nil
	case dotted && root == "claim":
		parsed, err := path.Parse("body." + rest)
		p.kind, p.path = inClaim, parsed
		return p, err
	}
	parsed, err := path.Parse(text)
	if err != nil {
		return p, fmt.Errorf("%w, or one of sig.LABEL, claim.NAME, setting.NAME, const.TEXT%s", err, alsoWords(words))
	}
	p.path, p.kind, p.optional = parsed, inRequest, parsed.Optional()
	if parsed.Root() == path.Header {
		p.kind, p.name = inHeader, textproto.CanonicalMIMEHeaderKey(parsed.Name())
		if stem, ok := strings.CutSuffix(parsed.Name(), "#"); ok {
			p.kind, p.names = inHeaders, numbered(stem)
		}
	}
	return p, nil
}

func alsoWords(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return ", " + strings.Join(words, ", ")
}

func numbered(stem string) []string {
	names := make([]string, maxNumbered)
	for i := range names {
		names[i] = textproto.CanonicalMIMEHeaderKey(stem + strconv.Itoa(i+1))
	}
	return names
}

// isBody tells whether the place is inside the JSON of the body.
func (p place) isBody() bool { return p.kind == inRequest && p.path.Root() == path.Body }

func (p place) isForm() bool { return p.kind == inRequest && p.path.Root() == path.Form }
