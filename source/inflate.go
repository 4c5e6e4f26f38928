package source

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
)

// inflate gives the plain body of a request. Only what the scheme names is
// taken; the cap counts inflated bytes.
func (s *Source) inflate(req *Request) ([]byte, *refusal) {
	lines := req.Header["Content-Encoding"]
	coding := strings.ToLower(strings.TrimSpace(strings.Join(lines, ",")))
	if coding == "" || coding == "identity" {
		return req.Body, nil
	}
	if !slices.Contains(s.scheme.encodings, coding) {
		return nil, refuse(UnsupportedEncoding, "the body is compressed and the source takes no such encoding; see verify.content_encodings")
	}
	plain, err := gunzip(req.Body, s.maxBody)
	switch {
	case errors.Is(err, errInflated):
		return nil, refuse(TooLarge, "the inflated body is over the cap")
	case err != nil:
		return nil, refuse(UnsupportedEncoding, "the body is not what its Content-Encoding says")
	}
	return plain, nil
}

var errInflated = errors.New("larger than the cap")

func gunzip(data []byte, limit int64) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(reader, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(plain)) > limit {
		return nil, errInflated
	}
	return plain, nil
}
