package handlers

import (
	"context"
	"errors"
	"strings"
	"testing"

	"creel/path"
)

const sample = `{"id":9007199254740993,"huge":123456789012345678901234567890,"price":1.5,"live":true,"null":null,"name":"a+b c",
 "data":{"object":{"amount_paid":100,"lines":[{"price":1,"tax":2},{"price":5}],"empty":{}}},"twice":1,"twice":2,"a.b":3,"type":"x","list":[1,2,3]}`

func evaluate(t testing.TB, when, body string) (bool, error) {
	t.Helper()
	c, problem := compileCondition(when)
	if problem != nil {
		t.Fatalf("%s: %v", when, *problem)
	}
	w := work(body)
	return c.holds(t.Context(), &subject{work: w, doc: path.NewDocument(w.Payload), tenant: "acme"})
}

func TestConditionReadsTheEvent(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]bool{
		`true`: true,
		`body.data.object.amount_paid > 0 && type == "invoice.paid"`: true,
		`body.data.object.amount_paid > 100`:                         false,
		`body.id == 9007199254740993`:                                true,
		`body.id == 9007199254740992`:                                false,
		`body.id > 9007199254740992`:                                 true,
		`body.huge == "123456789012345678901234567890"`:              true,
		`body.price == 1.5 && body.price * 2 == 3`:                   true,
		`body.live`:            true,
		`not body.live`:        false,
		`body.null == nil`:     true,
		`body.none? .x == nil`: false, // see below
		`body["a.b"] == 3 && body["data"]["object"].amount_paid == 100`:                true,
		`body.list[1] == 2 && body.list[-1] == 3`:                                      true,
		`body.data.object.lines[1].price == 5`:                                         true,
		`any(body.data.object.lines, .price > 4)`:                                      true,
		`all(body.data.object.lines, #.price > 4)`:                                     false,
		`filter(body.data.object.lines, .price > 4)[0].price == 5`:                     true,
		`sum(body.data.object.lines, .price) == 6`:                                     true,
		`count(body.data.object.lines, .price > 0) == len(body.data.object.lines)`:     true,
		`map(body.list, # * 2) == [2, 4, 6]`:                                           true,
		`2 in body.list && "x" not in ["y"]`:                                           true,
		`body.id in [1, 9007199254740993]`:                                             true,
		`"id" in body`:                                                                 false, // see below
		`let x = body.data.object; x.amount_paid == 100`:                               true,
		`header["x-foo"] == "Bar" && header["X-FOO"] == "Bar"`:                         true,
		`query.a == "1" && query["hub.mode"] == "subscribe"`:                           true,
		`source == "gen" && account == "" && tenant == "acme" && id == "evt_1"`:        true,
		`object == "in_1" && version == "17" && event == "gen//evt_1"`:                 true,
		`body.type == "x"`:                                                             true,
		`type startsWith "invoice." && type matches "^inv" && type contains "paid"`:    true,
		`upper(body.name) == "A+B C" && hasPrefix(body.name, "a+")`:                    true,
		`"a" + body.name == "aa+b c"`:                                                  true,
		`body.data?.object?.none == nil`:                                               true,
		`body.none?.deeper?.still == nil`:                                              false, // see below
		`(body?.none?.deeper?.still ?? 5) == 5`:                                        true,
		`body.null?.x.y.z == nil`:                                                      true,
		`body.data.object.lines[0]?.tax == 2 && body.data.object.lines[1]?.tax == nil`: true,
		`count(body.data.object.lines, #?.tax != nil) == 1`:                            true,
		`len(body.data.object.empty) == 0`:                                             true,
		`get(body.data, "none") == nil`:                                                true,
		`body.data.object.amount_paid > 50 ? body.live : false`:                        true,
		`body.list[body.list[0]] == 2`:                                                 true,
	} {
		switch when {
		case `body.none? .x == nil`, `"id" in body`, `body.none?.deeper?.still == nil`:
			continue // these are errors, in the test below
		}
		if got, err := evaluate(t, when, sample); err != nil || got != want {
			t.Errorf("%s = %v, %v", when, got, err)
		}
	}
}

func TestConditionNamesTheMissingPlace(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		`body.none == nil`:                      "body.none: nothing",
		`body.data.none.x > 1`:                  "body.data.none: nothing",
		`body.data.object.amount_paid.x == 1`:   "body.data.object.amount_paid.x: nothing",
		`body.none?.x == nil`:                   "body.none: nothing",
		`body.data?.none.x == nil`:              "body.data.none.x: nothing",
		`body.list[3] == 1`:                     "body.list.3: nothing",
		`body["a.c"] == 1`:                      `body.a\.c: nothing`,
		`body.twice == 1`:                       "body.twice: the member is written twice",
		`"id" in body`:                          "body: the member is written twice",
		`body.null.x == 1`:                      "body.null.x: nothing",
		`header["x-none"] == ""`:                "header.x-none: nothing",
		`any(body.data.object.lines, .tax > 2)`: "member tax: nothing",
		`body.list[body.id] == 1`:               "a member: nothing",
		`body.name > 1`:                         "column 11: invalid operation: string > int",
		`body.null > 1`:                         "invalid operation: <nil> > int",
		`body.name`:                             "the condition gives string instead of true or false",
		`int(body.name) == 1`:                   "a value does not fit what is done with it",
		`date(body.name).Year() == 1 || false`:  "",
	} {
		if want == "" {
			continue
		}
		_, err := evaluate(t, when, sample)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", when, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "a+b") {
			t.Errorf("%s: the error quotes the payload: %v", when, err)
		}
	}
}

func TestConditionOfABrokenBody(t *testing.T) {
	t.Parallel()
	if _, err := evaluate(t, `body.id == 1`, `{"id":1`); !errors.Is(err, path.ErrUnparsable) {
		t.Errorf("broken body: %v", err)
	}
	if held, err := evaluate(t, `type == "invoice.paid"`, `no json`); err != nil || !held {
		t.Errorf("a condition that does not look at the body: %v, %v", held, err)
	}
	deep := strings.Repeat("[", 100_000)
	if _, err := evaluate(t, `body[0] == 1`, deep); !errors.Is(err, path.ErrTooDeep) {
		t.Errorf("deep body: %v", err)
	}
}

func TestConditionIsCheckedWhenItIsCompiled(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		`body.id ==`:                             "line 1, column",
		`bdy.id == 1`:                            "column 1: unknown name bdy",
		`true and\n foo`:                         "line 1",
		"true and\n foo":                         "line 2, column 2: unknown name foo",
		`type == 5`:                              "invalid operation: == (mismatched types string and int)",
		`"text"`:                                 "expected bool, but got string",
		`now() > now()`:                          "unknown name now",
		`min(1, 2) == 1`:                         "unknown name min",
		`len(flatten(body.a)) > 1`:               "unknown name flatten",
		`len(uniq(body.a)) > 1`:                  "unknown name uniq",
		`reduce(body.a, #acc + #) == 1`:          "unknown name reduce",
		`$env["body"] == 1`:                      "$env is not available",
		`body.f()`:                               "only functions can be called",
		`let body = 1; body == 1`:                "cannot redeclare",
		`body[""] == 1`:                          "empty step",
		strings.Repeat("true && ", 600) + "true": "exceeds maximum allowed nodes",
		strings.Repeat("a", maxText+1):           "longer than",
	} {
		_, problem := compileCondition(when)
		if problem == nil || !strings.Contains(problem.Message, want) {
			t.Errorf("%.60s: %v, want %q", when, problem, want)
		}
	}
}

// The hint of a name that nobody knows leads to what is meant.
func TestConditionHints(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		`data.object.amount_paid > 0`:        "did you mean body.data.object.amount_paid? names: body, ",
		"true and\n data.items[0].n?.m == 1": "did you mean body.data.items[0].n?.m? ",
		`"é" == "é" and amount_paid > 0`:     "did you mean body.amount_paid? ",
		`len(data.items) > 0`:                "did you mean body.data.items? ",
		`any(body.a, dta.b == 1)`:            "did you mean body.dta.b? ",
		`bdy.id == 1`:                        "did you mean body.bdy.id? ",
		`boddy.id == 1`:                      "did you mean body? ",
		`headers["x-a"] == "1"`:              "did you mean header? ",
		`tpe == "invoice.paid"`:              "did you mean type? ",
		`foldl(body.a)`:                      "functions: abs, ",
		`lenn(body.a) > 1`:                   "did you mean len? ",
		`body.ref = "x"`:                     "use == to compare",
		`type == "a" and body.ref = "x"`:     "use == to compare",
	} {
		_, problem := compileCondition(when)
		if problem == nil || !strings.Contains(problem.Hint, want) {
			t.Errorf("%s: %+v, want %q", when, problem, want)
		}
		if problem != nil && !strings.Contains(when, "(body.a)") && strings.Contains(problem.Hint, "functions:") {
			t.Errorf("%s lists functions: %s", when, problem.Hint)
		}
	}
}

func TestConditionIsBounded(t *testing.T) {
	t.Parallel()
	items := `{"list":[` + strings.TrimSuffix(strings.Repeat("1,", 5000), ",") + `],"text":"` + strings.Repeat("x", 100_000) + `"}`
	for when, want := range map[string]string{
		`all(body.list, all(body.list, all(body.list, true)))`: "looks at more than",
		`len(map(body.list, body.text + "y")) > 1`:             "memory budget exceeded",
		`len(map(body.list, map(body.list, #))) > 1`:           "",
		`len(1..10000000) > 1`:                                 "memory budget exceeded",
	} {
		if _, err := evaluate(t, when, items); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", when, err, want)
		} else if want == "" && err == nil {
			t.Errorf("%s: no bound", when)
		}
	}
}

func TestConditionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c, problem := compileCondition(`all(1..1000, all(1..1000, true))`)
	if problem != nil {
		t.Fatal(*problem)
	}
	w := work(`{}`)
	s := &subject{work: w, doc: path.NewDocument(w.Payload)}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.holds(stopped, s); !errors.Is(err, errInterrupted) {
		t.Errorf("cancelled: %v", err)
	}
	late, cancel := context.WithTimeoutCause(t.Context(), -1, errTimeout)
	defer cancel()
	if _, err := c.holds(late, s); !errors.Is(err, errTimeout) {
		t.Errorf("timed out: %v", err)
	}
}

// FuzzCondition is part of gate F7: no expression and no body makes an
// evaluation panic, and what compiles gives true, false or an error.
func FuzzCondition(f *testing.F) {
	f.Add(`body.a?.b[0] == header["x"] && any(body.list, .x > 1)`, `{"a":{"b":[1]},"list":[]}`)
	f.Add(`let x = body.list; map(x, # + 1)[body.n] in x`, `{"list":[1,"a",null],"n":1}`)
	f.Add(`body?.x?.y.z ?? query.a == "1"`, `[]`)
	f.Add(`filter(1..100, # % 2 == 0)[-1] > 0 || "a" matches body`, `"("`)
	f.Fuzz(func(t *testing.T, when, body string) {
		c, problem := compileCondition(when)
		if problem != nil {
			return
		}
		w := work(body)
		_, _ = c.holds(t.Context(), &subject{work: w, doc: path.NewDocument(w.Payload)})
	})
}

// FuzzRule is part of gate F7 and of bug S-29: whatever text stands in a rule
// and in an event, the decision is one of the four, and a key is what the
// template says.
