package deliver

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter is how long the answer asks to wait, counted from now: seconds or
// an HTTP date (RFC 9110, section 10.2.3), at most limit. It is 0 for a
// missing, past or meaningless value, so that a bad one changes nothing.
func retryAfter(header http.Header, now time.Time, limit time.Duration) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if allDigits(text) {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(limit/time.Second) {
			return limit // more than an int64 holds is as huge as huge gets
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil || !at.After(now) {
		return 0
	}
	return min(at.Sub(now), limit)
}

func allDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}
