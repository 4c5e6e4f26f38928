package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// bodyNext is what to do about a body that was changed.
const bodyNext = "whatever stands between the sender and Creel has to pass the body on byte for byte: look at the proxy, and at what made the capture"

func (s *Source) bodyTrial(req *Request, body []byte, likely string) trial {
	return trial{part: PartBody, src: s, req: withBody(req, body), keys: s.keys, likely: likely, next: bodyNext}
}

// lineEnds tries the changes that editors, shells and proxies make without
// knowing what a body is.
func (s *Source) lineEnds(req *Request) iter.Seq[trial] {
	bom := []byte("\ufeff")
	return func(yield func(trial) bool) {
		body := req.Body
		unix := bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
		for _, form := range []struct {
			likely string
			body   []byte
		}{
			{"it fits the body without its last line end", bytes.TrimSuffix(bytes.TrimSuffix(body, []byte("\n")), []byte("\r"))},
			{"it fits the body without the blanks and line ends around it", bytes.TrimSpace(body)},
			{"it fits the body with a line end behind it", append(bytes.Clone(body), '\n')},
			{"it fits the body with a line end (CRLF) behind it", append(bytes.Clone(body), "\r\n"...)},
			{"it fits the body with LF in place of CRLF", unix},
			{"it fits the body with CRLF in place of LF", bytes.ReplaceAll(unix, []byte("\n"), []byte("\r\n"))},
			{"it fits the body with LF in place of CRLF, and without its last line end", bytes.TrimSuffix(unix, []byte("\n"))},
			{"it fits the body without the byte order mark at its start", bytes.TrimPrefix(body, bom)},
			{"it fits the body with a byte order mark at its start", append(bytes.Clone(bom), body...)},
			{"it fits an empty body", nil},
			{"it fits the body with %20 in place of +", bytes.ReplaceAll(body, []byte("+"), []byte("%20"))},
			{"it fits the body with + in place of %20", bytes.ReplaceAll(body, []byte("%20"), []byte("+"))},
		} {
			if !sameBytes(form.body, body) && !yield(s.bodyTrial(req, form.body, form.likely)) {
				return
			}
		}
		if req.Header.Get("Content-Encoding") != "" {
			other := s.with(func(sc *scheme) { sc.plainSigned = !sc.plainSigned })
			yield(trial{part: PartScheme, src: other, req: req, keys: s.keys,
				likely: "of a compressed body the other bytes are signed",
				next:   `verify.compressed says which: "plain" or "sent"`})
		}
	}
}

// maxRewritten is the largest body that is written anew in every form.
const maxRewritten = 1 << 20

// rewritten tries the usual ways of writing the same JSON.
func (s *Source) rewritten(req *Request) iter.Seq[trial] {
	return func(yield func(trial) bool) {
		if len(req.Body) > maxRewritten || !json.Valid(req.Body) {
			return
		}
		for _, escape := range escapes() {
			spelt := req.Body
			if escape.write != nil {
				spelt = respell(req.Body, escape.write)
			}
			for _, layout := range layouts() {
				body := layout.write(spelt)
				for _, end := range []string{"", "\n"} {
					if !yield(s.bodyTrial(req, append(bytes.Clone(body), end...),
						fmt.Sprintf("it fits the same JSON %s%s%s: something read the body and wrote it anew", layout.name, escape.name, endName(end)))) {
						return
					}
				}
			}
		}
	}
}

func endName(end string) string {
	if end == "" {
		return ""
	}
	return " and with a line end"
}

// layout is a way of setting blanks in JSON.
type layout struct {
	name  string
	write func([]byte) []byte
}

func layouts() []layout {
	indented := func(by string) func([]byte) []byte {
		return func(data []byte) []byte {
			var b bytes.Buffer
			_ = json.Indent(&b, data, "", by) // it is valid
			return b.Bytes()
		}
	}
	return []layout{
		{"without blanks", compact},
		{"with a blank behind each comma and colon", spaced},
		{"indented by two", indented("  ")},
		{"indented by four", indented("    ")},
		{"indented by tabs", indented("\t")},
		{"with the same blanks", func(data []byte) []byte { return data }},
	}
}

func compact(data []byte) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, data) // it is valid
	return b.Bytes()
}

// spaced is what json.dumps of Python writes.
func spaced(data []byte) []byte {
	tight := compact(data)
	out := make([]byte, 0, len(tight)+len(tight)/8)
	inside, escaped := false, false
	for _, c := range tight {
		out = append(out, c)
		switch {
		case escaped:
			escaped = false
		case inside && c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case !inside && (c == ',' || c == ':'):
			out = append(out, ' ')
		}
	}
	return out
}

// escape is a way of writing texts in JSON.
type escape struct {
	name  string
	write func(*bytes.Buffer, rune)
}

func escapes() []escape {
	return []escape{
		{"", nil},
		{", texts in UTF-8", plainRune},
		{", texts in ASCII", asciiRune},
		{", texts in ASCII with escaped slashes", func(b *bytes.Buffer, r rune) {
			if r == '/' {
				b.WriteString(`\/`)
				return
			}
			asciiRune(b, r)
		}},
		{", texts in UTF-8 with escaped slashes", func(b *bytes.Buffer, r rune) {
			if r == '/' {
				b.WriteString(`\/`)
				return
			}
			plainRune(b, r)
		}},
		{", with <, > and & escaped", func(b *bytes.Buffer, r rune) {
			if strings.ContainsRune("<>&\u2028\u2029", r) {
				fmt.Fprintf(b, `\u%04x`, r)
				return
			}
			plainRune(b, r)
		}},
	}
}

func plainRune(b *bytes.Buffer, r rune) {
	switch r {
	case '"', '\\':
		b.WriteByte('\\')
		b.WriteRune(r)
	case '\b':
		b.WriteString(`\b`)
	case '\f':
		b.WriteString(`\f`)
	case '\n':
		b.WriteString(`\n`)
	case '\r':
		b.WriteString(`\r`)
	case '\t':
		b.WriteString(`\t`)
	default:
		if r < ' ' {
			fmt.Fprintf(b, `\u%04x`, r)
			return
		}
		b.WriteRune(r)
	}
}

func asciiRune(b *bytes.Buffer, r rune) {
	if r < utf8.RuneSelf {
		plainRune(b, r)
		return
	}
	if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
		fmt.Fprintf(b, `\u%04x\u%04x`, r1, r2)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

// respell writes every text of a JSON document anew and leaves the rest as it
// is.
func respell(data []byte, write func(*bytes.Buffer, rune)) []byte {
	var b bytes.Buffer
	for i := 0; i < len(data); {
		if data[i] != '"' {
			b.WriteByte(data[i])
			i++
			continue
		}
		end := i + 1
		for data[end] != '"' {
			if data[end] == '\\' {
				end++
			}
			end++
		}
		var text string
		_ = json.Unmarshal(data[i:end+1], &text) // it is valid
		b.WriteByte('"')
		for _, r := range text {
			write(&b, r)
		}
		b.WriteByte('"')
		i = end + 1
	}
	return b.Bytes()
}
