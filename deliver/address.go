package deliver

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"creel/path"
)

// mostURL bounds a URL that templates make, in bytes: servers refuse longer
// request lines.
const mostURL = 8 << 10

// The reasons why the values of a shipment make no URL. None quotes them.
var (
	errNoURL     = errors.New("the values do not make a URL")
	errURLScheme = errors.New("the values make a URL that does not begin with http:// or https://")
	errURLUser   = errors.New("the values make a URL with a user in it")
	errURLHost   = errors.New("the value can not stand in a host")
	errURLNumber = errors.New("the values make a host that is a number and no address")
	errURLDots   = errors.New("the values make a step of dots, which would lead elsewhere")
	errURLAway   = errors.New("the values would lead to another address")
	errURLLong   = fmt.Errorf("the URL is over %d bytes", mostURL)
)

// addressWords is a URL with places of a shipment in it. Values are escaped for
// where they stand. One that begins the whole URL is taken as it is.
type addressWords struct {
	words wording
	// free says that values take part in host or port: what is dialled then is
	// checked each time.
	free         bool
	scheme, host string // where they are the same for every shipment
}

// stage is a part of a URL.
type stage int

const (
	inScheme stage = iota
	inHost
	inPath
	inQuery
)

// stageOf tells which part of a URL what comes next is in.
func stageOf(text string) stage {
	_, rest, ok := strings.Cut(text, "://")
	switch {
	case !ok:
		return inScheme
	case strings.Contains(rest, "?"):
		return inQuery
	case strings.Contains(rest, "/"):
		return inPath
	}
	return inHost
}

// escape writes a value for the part of a URL that it stands in.
func (at stage) escape(text string) (string, error) {
	switch at {
	case inPath:
		return url.PathEscape(text), nil
	case inQuery:
		return url.QueryEscape(text), nil
	case inHost:
		if !isHostText(text) {
			return "", errURLHost
		}
	}
	return text, nil
}

// isHostText tells whether a text can be nothing but a part of a host or port.
func isHostText(text string) bool {
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._:[]", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// of makes the URL of a shipment. An empty value counts as missing where it is
// not optional, since it would lead to something else.
func (a *addressWords) of(p *places) (*url.URL, error) {
	var b strings.Builder
	for _, piece := range a.words.pieces {
		if piece.Literal != "" {
			b.WriteString(piece.Literal)
			continue
		}
		text, err := p.text(piece)
		if err == nil && text == "" && !piece.Optional {
			err = &path.PlaceError{Place: piece.Place(), Err: path.ErrMissing}
		}
		if err != nil {
			return nil, err
		}
		if len(text) > mostURL {
			return nil, errURLLong
		}
		escaped, err := stageOf(b.String()).escape(text)
		if err != nil {
			return nil, &path.PlaceError{Place: piece.Place(), Err: err}
		}
		b.WriteString(escaped)
	}
	return a.checked(b.String())
}

// checked parses the URL that came of a template and makes sure that it is one
// that a request can go to.
func (a *addressWords) checked(text string) (*url.URL, error) {
	if len(text) > mostURL {
		return nil, errURLLong
	}
	u, err := url.Parse(text)
	switch {
	case err != nil: // the error quotes the text
		return nil, errNoURL
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errURLScheme
	case u.User != nil:
		return nil, errURLUser
	case u.Opaque != "", u.Hostname() == "", !isPort(u.Port()), strings.HasSuffix(u.Host, ":"):
		return nil, errNoURL
	case !a.free && (u.Scheme != a.scheme || u.Host != a.host):
		return nil, errURLAway
	case a.free && isNumber(u.Hostname()):
		return nil, errURLNumber
	}
	u.Fragment, u.RawFragment = "", ""
	if a.words.pieces[0].Literal == "" {
		return u, nil // steps of dots in it are its own
	}
	for step := range strings.SplitSeq(u.EscapedPath(), "/") {
		if plain, err := url.PathUnescape(step); err == nil && (plain == "." || plain == "..") {
			return nil, errURLDots
		}
	}
	return u, nil
}

// isNumber tells whether a host ends in a number without being an address:
// 2130706433, 0x7f000001, 127.1, 0177.0.0.1. Browsers and C libraries read such
// as IPv4 addresses (https://url.spec.whatwg.org/#ends-in-a-number-checker);
// no name ends in a number.
func isNumber(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(strings.ToLower(last), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
