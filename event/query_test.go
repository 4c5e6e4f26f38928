package event

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

var queryNow = time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)

func TestParseQuery(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Selector{
		"":     {},
		"  \t": {},
		`source:stripe type:invoice.* error:"connect refused" since:24h object:in_1 id:evt_ body.data.object.customer:cus_1 state:dead destination:app`: {
			Source: "stripe", Type: "invoice.*", Error: "connect refused", Since: queryNow.Add(-24 * time.Hour), SinceAgo: 86_400, Object: "in_1", ID: "evt_",
			Index: []IndexMatch{{"body.data.object.customer", "cus_1"}}, State: Dead, Destination: "app",
		},
		"in_1Qx":                   {Word: "in_1Qx"},
		`"order:7 a"`:              {Word: "order:7 a"},
		`error:"a \"b\" \\ \c"`:    {Error: `a "b" \ \c`},
		"until:2026-03-01":         {Until: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)},
		"since:7d failure:12":      {Since: queryNow.AddDate(0, 0, -7), SinceAgo: 604_800, Failure: 12},
		"account:a:b object:x:y":   {Account: "a:b", Object: "x:y"},
		"header.x-shop:1 form.a:2": {Index: []IndexMatch{{"header.x-shop", "1"}, {"form.a", "2"}}},
	} {
		got, err := ParseQuery(text, queryNow)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		want.SinceAgo = 0 // a query tells the moment
		again, err := ParseQuery(got.Query(), queryNow)
		if err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%s was written as %s, which is %+v, %v", text, got.Query(), again, err)
		}
	}
}

func TestABadQuerySaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"sorce:stripe":                  "sorce: is not known; did you mean state, source",
		"dest:app":                      "did you mean destination?",
		"types:a":                       "did you mean type?",
		"state:broken":                  "none of pending, claimed",
		"since:yesterday":               "yesterday is not a time: 2026-11-01",
		`error:"open`:                   "a quote is not closed",
		`error:a"b`:                     "a quote within",
		`error:"a"b`:                    "no blank behind the quote",
		"error:":                        "nothing stands behind error:",
		`""`:                            "nothing between the quotes",
		"a b":                           `"b" is a second word`,
		"source:a source:b":             "source: stands twice",
		"failure:x":                     "not the number of a group",
		"since:1h until:2h":             "until is not after since",
		"body.:1":                       "body.: is not known",
		"\xff":                          "not UTF-8",
		strings.Repeat("a", MaxQuery+1): "longer than",
		"body.a:" + strings.Repeat("a", MaxIndexValue+1): "more than 256 bytes",
	} {
		if _, err := ParseQuery(text, queryNow); !errors.Is(err, ErrBadQuery) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseQuery(f *testing.F) {
	f.Add(`source:stripe type:invoice.* error:"connect \"refused" since:24h until:2026-03-01T10:00:00Z body.a.0:1 word`)
	f.Add(`state:dead failure:3 "a:b" id:x`)
	f.Add(`since:2h until:1h`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseQuery(text, queryNow)
		if err != nil {
			if !errors.Is(err, ErrBadQuery) || !reflect.DeepEqual(s, Selector{}) {
				t.Errorf("%q: %+v, %v", text, s, err)
			}
			return
		}
		s.SinceAgo, s.UntilAgo = 0, 0 // a query tells the moment
		again, err := ParseQuery(s.Query(), queryNow)
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%q was written as %q: %+v, %v; want %+v", text, s.Query(), again, err, s)
		}
	})
}

func TestBugJOB13ADayAgoIs24HoursAgo(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for _, now := range []time.Time{time.Date(2026, 3, 8, 12, 0, 0, 0, zone), time.Date(2026, 11, 1, 12, 0, 0, 0, zone)} {
		if at, err := ParseMoment("1d", now); err != nil || now.Sub(at) != 24*time.Hour {
			t.Errorf("1d before %s is %s, %v", now, at, err)
		}
	}
}
