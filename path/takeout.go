package path

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// cutAt is from which length on, in bytes, a text is found by its beginning: a
// message may quote no more of it.
const cutAt = 24

// TakeOut writes a message without the texts, quoted or cut short too.
func TakeOut(message string, texts []string) string {
	texts = slices.Clone(texts)
	slices.SortFunc(texts, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // one may stand in another
	for _, text := range texts {
		for _, written := range []string{text, inner(strconv.Quote(text)), inner(strconv.QuoteToGraphic(text)), inner(string(quote([]byte(text))))} {
			message = strings.ReplaceAll(message, written, Redacted)
			if len(written) > cutAt {
				message = takeOutCut(message, written)
			}
		}
	}
	return message
}

func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

// takeOutCut takes out what begins like a text, as far as it goes on like it.
func takeOutCut(message, text string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(message, text[:cutAt])
		out.WriteString(before)
		if !found {
			return out.String()
		}
		rest := text[cutAt:]
		n := 0
		for n < len(rest) && n < len(after) && rest[n] == after[n] {
			n++
		}
		out.WriteString(Redacted)
		message = after[n:]
	}
}
