package handlers

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/expr-lang/expr/file"

	"creel/path"
)

var (
	errTicks  = fmt.Errorf("looks at more than %d elements", maxTicks)
	errMemory = errors.New("memory budget exceeded")
)

// run is one evaluation of an expression.
type run struct {
	ctx     context.Context
	word    string // what errors call the expression
	subject *subject
	places  []place
	values  []any // of the places that were read
	read    []bool
	ticks   int
	kept    int
}

// absent is what a chain gives from where ?. found nothing to go on with.
type absent struct{}

// place reads a place of the event, once.
func (r *run) place(args []any) (any, error) {
	i := args[0].(int)
	if r.read[i] {
		return r.values[i], nil
	}
	value, err := r.readPlace(r.places[i])
	if err != nil {
		return nil, err
	}
	r.values[i], r.read[i] = value, true
	return value, nil
}

func (r *run) readPlace(p place) (any, error) {
	if len(p.steps) == 0 {
		return r.readRoot(p.root)
	}
	value, ok, err := r.subject.doc.Get(p.path)
	if err != nil {
		return nil, err
	}
	if ok {
		return decode(p, value)
	}
	return r.nothingAt(p)
}

// nothingAt says what a chain gives whose place is empty: it depends on how
// far the chain could be followed, and whether it goes on by ?. from there.
func (r *run) nothingAt(p place) (any, error) {
	found, null := len(p.steps)-1, false
	for ; found > 0; found-- {
		value, ok, err := r.get(p, found)
		if err != nil {
			return nil, err
		}
		if ok {
			null = value.Kind == path.Null
			break
		}
	}
	next := p.steps[found]
	if !null {
		if !next.optional {
			return nil, missing(p, found+1)
		}
		if found+1 == len(p.steps) {
			return nil, nil
		}
		next = p.steps[found+1] // asked of a member that is not there
		found++
	}
	if !next.optional {
		return nil, missing(p, found+1)
	}
	return absent{}, nil
}

func missing(p place, n int) error {
	return &path.PlaceError{Place: p.text(n), Err: path.ErrMissing}
}

// get reads the place of the first n steps, n > 0.
func (r *run) get(p place, n int) (path.Value, bool, error) {
	parsed, err := path.Parse(p.text(n))
	if err != nil {
		return path.Value{}, false, err
	}
	return r.subject.doc.Get(parsed)
}

// text writes the first n steps in the path language.
func (p place) text(n int) string {
	text := p.root.String()
	for _, step := range p.steps[:n] {
		text += "." + path.Escape(step.name)
	}
	return text
}

func decode(p place, value path.Value) (any, error) {
	out, err := value.Decode()
	if err != nil {
		return nil, &path.PlaceError{Place: p.text(len(p.steps)), Err: err}
	}
	return out, nil
}

// readRoot gives a whole root: the decoded body, or a map of the fields.
func (r *run) readRoot(root path.Root) (any, error) {
	payload := r.subject.doc.Payload()
	fields := map[string]any{}
	var err error
	add := func(name, value string) bool {
		if _, twice := fields[name]; twice && root != path.Header {
			err = &path.PlaceError{Place: root.String() + "." + path.Escape(name), Err: path.ErrDuplicateMember}
			return false
		} else if !twice {
			fields[name] = value
		}
		return true
	}
	switch root {
	case path.Header:
		path.Headers(payload.Header, func(name, value string) bool { return add(strings.ToLower(name), value) })
	case path.Query:
		path.Fields(payload.Query, add)
	case path.Form:
		path.Fields(string(payload.Body), add)
	default:
		value, err := r.subject.doc.Decode()
		if err != nil && !isPlaced(err) {
			err = &path.PlaceError{Place: "body", Err: err}
		}
		return value, err
	}
	return fields, err
}

func isPlaced(err error) bool {
	var placed *path.PlaceError
	return errors.As(err, &placed)
}

// member reads a member of a decoded value: what, its name or index, whether
// it is reached by ?. and what an error may call it.
func (r *run) member(args []any) (any, error) {
	base, key, optional := args[0], args[1], args[2].(bool)
	if _, gone := base.(absent); gone || (base == nil && optional) {
		return absent{}, nil
	}
	value, ok := memberOf(base, key)
	if !ok && !optional {
		return nil, &path.PlaceError{Place: args[3].(string), Err: path.ErrMissing}
	}
	return value, nil
}

func memberOf(base, key any) (any, bool) {
	switch b := base.(type) {
	case map[string]any:
		name, ok := key.(string)
		if !ok {
			return nil, false
		}
		value, ok := b[name]
		return value, ok
	case []any:
		i, ok := key.(int)
		if wide, isWide := key.(int64); isWide {
			i, ok = int(wide), true
		}
		if i < 0 {
			i += len(b)
		}
		if !ok || i < 0 || i >= len(b) {
			return nil, false
		}
		return b[i], true
	}
	return nil, false
}

// settle ends a chain.
func (r *run) settle(args []any) (any, error) {
	if _, gone := args[0].(absent); gone {
		return nil, nil
	}
	return args[0], nil
}

// tick is called for every element that a loop looks at.
func (r *run) tick([]any) (any, error) {
	if r.ticks++; r.ticks > maxTicks {
		return nil, errTicks
	}
	if r.ticks&63 == 0 && r.ctx.Err() != nil {
		return nil, endOf(r.ctx)
	}
	return nil, nil
}

// keep charges a value that is kept to the memory budget.
func (r *run) keep(args []any) (any, error) {
	size := 0
	switch v := args[0].(type) {
	case string:
		size = len(v)/unitSize + 1
	case []any:
		size = len(v)
	case []string:
		size = len(v)
	case map[string]any:
		size = len(v)
	}
	if r.kept += size; r.kept > maxMemory {
		return nil, errMemory
	}
	return args[0], nil
}

// telling are the messages of the expression language that name types only.
var telling = regexp.MustCompile(`^(invalid operation: [^(]*|memory budget exceeded|reflect: .*|interface conversion: .*|integer divide by zero|runtime error: .*)$`)

// explain turns an error of the evaluation into one that may be stored and
// shown: it quotes nothing of the event.
func (r *run) explain(err error) error {
	var placed *path.PlaceError
	if errors.As(err, &placed) {
		return placed
	}
	if errors.Is(err, errTicks) {
		return fmt.Errorf("the %s %w", r.word, errTicks)
	}
	for _, own := range []error{errMemory, errOverflow, errTimeout, errInterrupted} {
		if errors.Is(err, own) {
			return own
		}
	}
	var located *file.Error
	if !errors.As(err, &located) {
		return errors.New("the " + r.word + " can not be evaluated")
	}
	if kind, isCast := strings.CutPrefix(located.Message, "invalid operation: bool("); isCast {
		return errors.New("the condition gives " + strings.TrimSuffix(kind, ")") + " instead of true or false: compare it, such as > 0, == \"paid\" or != nil")
	}
	message := "a value does not fit what is done with it"
	if telling.MatchString(located.Message) {
		message = located.Message
	}
	return fmt.Errorf("line %d, column %d: %s", located.Line, located.Column+1, message)
}
