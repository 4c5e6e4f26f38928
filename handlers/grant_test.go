package handlers

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"creel/config"
	"creel/event"
)

func granting(amount string) config.Rule {
	return config.Rule{Grant: &config.Grant{To: "{body.who}", Unit: "credits", Amount: config.Expression(amount)}}
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount, body string
		want         int64
		failure      string
	}{
		{"100", `{}`, 100, ""},
		{" 100 ", `{}`, 100, ""},
		{"body.n", `{"n":9007199254740993}`, 9007199254740993, ""},
		{"body.n * 2", `{"n":21}`, 42, ""},
		{"body.n / 100 * 2", `{"n":2500}`, 50, ""},
		{"round(body.price * 100)", `{"price":19.99}`, 1999, ""},
		{"int(body.n)", `{"n":"17"}`, 17, ""},
		{"sum(body.items, .price * .n)", `{"items":[{"price":3,"n":2},{"price":5,"n":1}]}`, 11, ""},
		{"sum(body.items)", `{"items":[1,2,3]}`, 6, ""},
		{`type == "invoice.paid" ? 5 : body.n`, `{}`, 5, ""},
		{"body.n", `{"n":2305843009213693952}`, event.MaxAmount, ""},
		{"body.n", `{"n":9007199254740991.0}`, 1<<53 - 1, ""},
		{"body.n", `{"n":9007199254740993.0}`, 0, "and is too large to be exact"}, // reads as …992
		{"body.n", `{"n":0}`, 0, "amount: 0 is not above 0"},
		{"body.n", `{"n":-5}`, 0, "amount: -5 is not above 0"},
		{"body.n", `{"n":2305843009213693953}`, 0, "amount: 2305843009213693953 is more than 2305843009213693952"},
		{"body.n", `{"n":99999999999999999999}`, 0, "amount: 99999999999999999999 is more than"},
		{"body.n", `{"n":-99999999999999999999}`, 0, "amount: -99999999999999999999 is not above 0"},
		{"body.n", `{"n":1.5}`, 0, "amount: 1.5 is not a whole number"},
		{"body.price * 100", `{"price":19.99}`, 0, "is not a whole number"},
		{"body.n", `{"n":1e17}`, 0, "amount: 1e+17 was computed with a fraction and is too large"},
		{"body.n / body.m", `{"n":1,"m":0}`, 0, "amount: +Inf is no number"},
		{"body.n", `{"n":"100"}`, 0, "amount: 100 is a text; int(…) makes a number of it"},
		{"body.n", `{"n":"secret"}`, 0, "amount: a text is no number"},
		{"body.n", `{"n":null}`, 0, "amount: nothing is no number"},
		{"body.n", `{"n":true}`, 0, "amount: bool is no number"},
		{"body.n", `{}`, 0, "amount: body.n: nothing stands there"},
		{"body.n * 4", `{"n":4611686018427387905}`, 0, "amount: a whole number does not fit 64 bits"},
		{"body.n + body.n", `{"n":9223372036854775807}`, 0, "amount: a whole number does not fit 64 bits"},
		{"sum(body.items)", `{"items":[9223372036854775807,9223372036854775807,3]}`, 0, "amount: a whole number does not fit 64 bits"},
		{"0 - body.n - body.n - 2", `{"n":9223372036854775807}`, 0, "amount: a whole number does not fit 64 bits"},
	} {
		d := decided(t, granting(c.amount), `{"who":"u_1",`+c.body[1:])
		if c.body == `{}` {
			d = decided(t, granting(c.amount), `{"who":"u_1"}`)
		}
		if c.failure != "" {
			dead(t, d, c.failure)
			if strings.Contains(d.Error, "secret") {
				t.Errorf("the error quotes the payload: %s", d.Error)
			}
			continue
		}
		want := []event.Effect{event.Grant{Key: "gen//evt_1/rule", Rule: "rule", To: "u_1", Unit: "credits", Amount: c.want}}
		if d.State != event.Done || !reflect.DeepEqual(d.Effects, want) {
			t.Errorf("%s of %s: %+v", c.amount, c.body, d)
		}
	}
}

func TestGateO9AmountsAreCheckedWhenTheyAreLoaded(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]string{
		"":                     "is missing",
		"0":                    "0 is not above 0",
		"-7":                   "-7 is not above 0",
		"2305843009213693953":  "is more than 2305843009213693952",
		"99999999999999999999": "99999999999999999999 is more than",
		"bdy.n":                "is no amount: line 1, column 1: unknown name bdy",
		"body.n >":             "is no amount: line 1",
		"body.n > 1":           "is no amount: it gives bool",
		`"100"`:                "is no amount: it gives string",
		"[1]":                  "is no amount",
		"now()":                "is no amount",
	} {
		told(t, problemsOf(granting(amount)), "rule[0].grant.amount", want)
	}
}

func TestGrantIsChecked(t *testing.T) {
	t.Parallel()
	beyond := int64(event.MaxAmount + 1)
	for path, g := range map[string]config.Grant{
		"to":      {Unit: "u", Amount: "1"},
		"unit":    {To: "t", Amount: "1"},
		"floor":   {To: "t", Unit: "u", Amount: "1", Floor: &beyond},
		"reverse": {Reverse: "always the same"},
	} {
		told(t, problemsOf(config.Rule{Grant: &g}), "rule[0].grant."+path, "")
	}
}

func TestReversalMayLeaveOutWhatItReverses(t *testing.T) {
	t.Parallel()
	floor := int64(0)
	d := decided(t, config.Rule{Grant: &config.Grant{Reverse: "{body.invoice}/paid", Floor: &floor}}, `{"invoice":"in/1"}`)
	want := []event.Effect{event.Grant{Key: "gen//evt_1/rule", Rule: "rule", Reverse: "in%2F1/paid", Floor: &floor}}
	if d.State != event.Done || !reflect.DeepEqual(d.Effects, want) {
		t.Errorf("%+v", d)
	}
	part := config.Grant{Reverse: "{body.invoice}/paid", To: "{body.who}", Unit: "credits", Amount: "body.amount"}
	d = decided(t, config.Rule{Grant: &part}, `{"invoice":"in_1","who":"u","amount":3}`)
	want = []event.Effect{event.Grant{Key: "gen//evt_1/rule", Rule: "rule", Reverse: "in_1/paid", To: "u", Unit: "credits", Amount: 3}}
	if d.State != event.Done || !reflect.DeepEqual(d.Effects, want) {
		t.Errorf("%+v", d)
	}
	for body, want := range map[string]string{
		`{"who":"u","amount":3}`:                 "grant: reverse: body.invoice: nothing stands there",
		`{"invoice":"i","who":"","amount":3}`:    "grant: to: is empty for this event",
		`{"invoice":"i","who":"u","amount":-3}`:  "grant: amount: -3 is not above 0",
		`{"invoice":"i","who":null,"amount":-3}`: "grant: to: body.who: nothing stands there",
	} {
		dead(t, decided(t, config.Rule{Grant: &part}, body), want)
	}
}

// A condition does not pass by a sum that wrapped around either.
func TestSumsOfAConditionAreExact(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		"body.n * body.n > 0":                  "does not fit 64 bits",
		"body.n + 1 > 0":                       "does not fit 64 bits",
		"-2 - body.n < 0":                      "does not fit 64 bits",
		"sum(body.list) > 0":                   "does not fit 64 bits",
		"sum(body.list, # * 1) > 0":            "does not fit 64 bits",
		"body.small * 3 == 9":                  "",
		"body.small - 4 == -1":                 "",
		"body.small * -3 == -9":                "",
		"1.5 + body.small == 4.5":              "",
		`body.text + "c" == "abc"`:             "",
		`body.text + type == "abinvoice.paid"`: "",
		"sum([1.5, body.small]) == 4.5":        "",
		"sum([]) == 0":                         "",
		"body.text * 2 == 4":                   "invalid operation: string * int",
		"sum(body.text) > 1":                   "a value does not fit what is done with it",
	} {
		held, err := evaluate(t, when, fmt.Sprintf(`{"n":%d,"small":3,"text":"ab","list":[%d,1]}`, int64(1<<63-1), int64(1<<63-1)))
		if want == "" && (err != nil || !held) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %t %v", when, held, err)
		}
	}
}
