package handlers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"

	"creel/config"
	"creel/event"
	"creel/path"
)

// grant makes event.Grant.
type grant struct {
	to, unit, reverse *path.Template
	amount            *amount
	floor             *int64
}

func (c *compiler) grant(at string, g *config.Grant) maker {
	if g == nil {
		return nil
	}
	out := &grant{floor: g.Floor}
	if g.Reverse != "" {
		out.reverse = c.key(config.Join(at, "reverse"), g.Reverse)
	}
	optional := func(key, text, hint string) *path.Template {
		if text == "" && g.Reverse != "" {
			return nil
		}
		return c.needed(config.Join(at, key), text, hint)
	}
	out.to = optional("to", g.To, `say whose balance changes, such as to = "{body.customer}"`)
	out.unit = optional("unit", g.Unit, `say what is counted, such as unit = "credits"`)
	if g.Amount != "" || g.Reverse == "" {
		out.amount = c.amount(config.Join(at, "amount"), string(g.Amount))
	}
	if g.Floor != nil && (*g.Floor > event.MaxAmount || *g.Floor < -event.MaxAmount) {
		c.fault(config.Join(at, "floor"), strconv.FormatInt(*g.Floor, 10)+" is beyond what a balance can be", "floor = 0 refuses what would make it negative")
	}
	return out
}

func (*grant) word() string { return "grant" }

var errEmpty = errors.New("is empty for this event")

func (g *grant) make(ctx context.Context, s *subject, o operation) ([]event.Effect, error) {
	out := event.Grant{Key: o.key, Rule: o.rule, Floor: g.floor}
	var err error
	if g.reverse != nil {
		if out.Reverse, err = g.reverse.ExecuteKey(s.doc, s.name); err == nil && out.Reverse == "" {
			err = errEmpty
		}
		if err != nil {
			return nil, fmt.Errorf("reverse: %w", err)
		}
	}
	for _, part := range []struct {
		word string
		from *path.Template
		into *string
	}{{"to", g.to, &out.To}, {"unit", g.unit, &out.Unit}} {
		if *part.into, err = s.render(part.from); err == nil && part.from != nil && *part.into == "" {
			err = errEmpty
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.word, err)
		}
	}
	if g.amount != nil {
		if out.Amount, err = g.amount.of(ctx, s); err != nil {
			return nil, fmt.Errorf("amount: %w", err)
		}
	}
	return []event.Effect{out}, nil
}

// amount is a whole number above 0, written or computed.
type amount struct {
	fixed    int64
	computed *expression
}

func (c *compiler) amount(at, text string) *amount {
	const hint = `a whole number above 0 in the smallest unit, such as 100, or an expression such as "body.amount * 2"`
	text = strings.TrimSpace(text)
	if text == "" {
		c.fault(at, "is missing", hint)
		return nil
	}
	if strings.Trim(strings.TrimPrefix(text, "-"), "0123456789") == "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil {
			err = inRange(n)
		} else {
			err = errTooMuch
		}
		if err != nil {
			c.fault(at, text+" "+err.Error(), hint)
		}
		return &amount{fixed: n}
	}
	computed, problem := compileExpression("amount", text, expr.AsAny())
	if problem == nil {
		problem = notWhole(computed)
	}
	if problem != nil {
		if problem.Hint == "" {
			problem.Hint = hint
		}
		c.fault(at, problem.Message, problem.Hint)
		return nil
	}
	return &amount{computed: computed}
}

// notWhole refuses what can not give a number, whatever the event.
func notWhole(e *expression) *config.Problem {
	gives := e.program.Node().Type()
	if gives == nil {
		return &config.Problem{Message: "is no amount: it gives nothing"}
	}
	switch gives.Kind() {
	case reflect.Interface, reflect.Int, reflect.Int64, reflect.Float64:
		return nil
	}
	return &config.Problem{Message: "is no amount: it gives " + gives.String()}
}

// The ways in which an amount can be wrong. Each is told with the amount.
var (
	errText     = errors.New("is a text; int(…) makes a number of it")
	errNoNumber = errors.New("is no number")
	errFraction = errors.New("is not a whole number; round, ceil and floor make one")
	errUnsafe   = errors.New("was computed with a fraction and is too large to be exact")
	errTooMuch  = errors.New("is more than " + strconv.FormatInt(event.MaxAmount, 10))
	errTooFew   = errors.New("is not above 0")
)

func inRange(n int64) error {
	switch {
	case n <= 0:
		return errTooFew
	case n > event.MaxAmount:
		return errTooMuch
	}
	return nil
}

// of is the amount for an event. The errors are permanent but where the
// context ended.
func (a *amount) of(ctx context.Context, s *subject) (int64, error) {
	if a.computed == nil {
		return a.fixed, nil
	}
	value, err := a.computed.of(ctx, s)
	if err != nil {
		return 0, err
	}
	n, text, err := wholeAmount(value)
	if err == nil {
		err = inRange(n)
	}
	if err != nil {
		return 0, fmt.Errorf("%s %w", text, err)
	}
	return n, nil
}

// maxExact is the end of the whole numbers that a float64 tells apart: it is
// itself what the next one reads as.
const maxExact = 1 << 53

// wholeAmount takes the whole number that an expression gave, and its text.
func wholeAmount(value any) (n int64, text string, err error) {
	if n, ok := whole(value); ok {
		return n, strconv.FormatInt(n, 10), nil
	}
	switch v := value.(type) {
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return 0, text, errNoNumber
		case v != math.Trunc(v):
			return 0, text, errFraction
		case math.Abs(v) >= maxExact:
			return 0, text, errUnsafe
		}
		return int64(v), text, nil
	case string:
		// The digits of a number that does not fit 64 bits, or a text of the
		// event, which no error repeats.
		digits := strings.TrimPrefix(v, "-")
		switch {
		case digits == "" || strings.Trim(digits, "0123456789") != "":
			return 0, "a text", errNoNumber
		case len(digits) < len("9223372036854775807"):
			return 0, v, errText
		case digits != v:
			return 0, clip(v, 40), errTooFew
		}
		return 0, clip(v, 40), errTooMuch
	case nil:
		return 0, "nothing", errNoNumber
	}
	return 0, fmt.Sprintf("%T", value), errNoNumber
}
