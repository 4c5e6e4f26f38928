package event

import (
	"testing"
	"unicode/utf8"
)

func TestFailureTextKeepsWhatFailuresHaveInCommon(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"HTTP 503 Service Unavailable":                                "HTTP 503 Service Unavailable",
		"127.0.0.1:3000 refused the connection":                       "‹address› refused the connection",
		"app.internal:443 reset the connection":                       "‹address› reset the connection",
		"no answer within 10s":                                        "no answer within #s",
		`credits: unknown price "pr_9"`:                               `credits: unknown price "…"`,
		"no such customer cus_NffrFeUfNV2Hib":                         "no such customer cus_‹id›",
		"body.data.object.id finds nothing":                           "body.data.object.id finds nothing",
		"can't find the customer's row 42":                            "can't find the customer's row #",
		"expired at 2026-03-01T12:00:00Z":                             "expired at ‹time›",
		"run 7d3f2c1e-0b1a-4c5d-8e9f-001122334455 of ann@example.com": "run ‹id› of ‹address›",
		"amount 1152921506151679042 is over the sum of 2":             "amount # is over the sum of #",
		"sha256 differs":                                              "sha# differs",
		"line\tone\n\n two":                                           "line one two",
		"":                                                            "",
		"\xff\xfe is no text":                                         "? is no text",
		"see https://dash.example.com/a?b=1, then [::1]:80":           "see ‹address›, then ‹address›",
	} {
		if got := FailureText(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func FuzzFailureText(f *testing.F) {
	f.Add(`HTTP 404: "a" 'b' it's 12 in_1Qx9 2026-01-01 a@b.c ‹id› …`)
	f.Add("HTTP 4 \xff")
	f.Fuzz(func(t *testing.T, text string) {
		got := FailureText(text)
		if len(got) > MaxFailureText || !utf8.ValidString(got) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
