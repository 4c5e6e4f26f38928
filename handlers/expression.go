package handlers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"creel/config"
	"creel/path"
)

// The budgets of an expression.
const (
	maxText  = 8 << 10 // bytes of the expression
	maxNodes = 1000    // nodes of its syntax tree
	maxTicks = 1 << 20 // elements looked at in one evaluation
	// maxMemory bounds what one evaluation makes, in elements, and once more
	// what it keeps, in elements or in units of unitSize bytes of text.
	maxMemory = 1 << 20
	unitSize  = 16
)

// Functions are the functions that an expression may use. Left out are those
// that read a clock and those whose result or cost can be out of proportion to
// what they are given.
func Functions() []string {
	return []string{
		"abs", "all", "any", "ceil", "concat", "count", "date", "duration", "filter", "find", "findIndex", "findLast",
		"findLastIndex", "first", "float", "floor", "fromBase64", "get", "hasPrefix", "hasSuffix", "indexOf", "int", "keys",
		"last", "lastIndexOf", "len", "lower", "map", "none", "one", "round", "split", "string", "sum", "take", "trim",
		"trimPrefix", "trimSuffix", "upper", "values",
	}
}

// expression is a compiled expression over an event: the when of a rule or an
// amount.
type expression struct {
	word    string // what errors call it
	program *vm.Program
	places  []place
}

// compileExpression checks an expression. The problem says where it is wrong.
func compileExpression(word, text string, kind expr.Option) (*expression, *config.Problem) {
	if len(text) > maxText {
		return nil, &config.Problem{Message: fmt.Sprintf("is longer than %d bytes", maxText), Hint: "split it into several rules, or write a Go handler"}
	}
	rewrite := &rewriter{}
	program, err := expr.Compile(text, append(limits(), kind, environment(), functions(), expr.Patch(rewrite))...)
	if rewrite.err != nil {
		err = rewrite.err
	}
	if err != nil {
		return nil, expressionProblem(word, text, err)
	}
	return &expression{word: word, program: program, places: rewrite.places}, nil
}

func limits() []expr.Option {
	options := []expr.Option{
		expr.MaxNodes(maxNodes),
		expr.Optimize(false), // the rewriter has the last word on the tree
	}
	allowed := Functions()
	for _, b := range builtin.Builtins {
		if !slices.Contains(allowed, b.Name) {
			options = append(options, expr.DisableBuiltin(b.Name))
		}
	}
	return options
}

// environment declares the names. The roots stand in it only so that nothing
// else takes their names: the rewriter replaces every use of them.
func environment() expr.Option {
	env := map[string]any{runName: (*run)(nil)}
	for _, name := range path.EventNames() {
		env[name] = ""
	}
	for _, root := range roots() {
		env[root.String()] = ""
	}
	return expr.Env(env)
}

// functions adds what the rewriter calls. Their names can not be written.
func functions() expr.Option {
	return func(c *conf.Config) {
		add := func(name string, f func(r *run, args []any) (any, error)) {
			c.Functions[name] = &builtin.Function{Name: name, Func: func(args ...any) (any, error) {
				return f(args[0].(*run), args[1:])
			}}
		}
		add(placeName, (*run).place)
		add(memberName, (*run).member)
		add(settleName, (*run).settle)
		add(tickName, (*run).tick)
		add(keepName, (*run).keep)
		add(plusName, (*run).plus)
		add(minusName, (*run).minus)
		add(timesName, (*run).times)
		add(sumName, (*run).sum)
		for _, name := range exact() {
			c.Functions[name].Validate = ofBoth
		}
		c.Functions[keepName].Validate = ofKept
	}
}

// ofKept: what is charged stays what it is.
func ofKept(args []reflect.Type) (reflect.Type, error) {
	if len(args) == 2 && args[1] != nil {
		return args[1], nil
	}
	return reflect.TypeFor[any](), nil
}

// ofBoth tells what a sum of two literals is, so that what can be no condition
// and no amount, whatever the event, is refused when it is loaded. The first
// argument is the run.
func ofBoth(args []reflect.Type) (reflect.Type, error) {
	if len(args) == 3 && args[1] == args[2] && args[1] != nil && args[1].Kind() != reflect.Interface {
		return args[1], nil
	}
	return reflect.TypeFor[any](), nil
}

func expressionProblem(word, text string, err error) *config.Problem {
	message, _, _ := strings.Cut(err.Error(), "\n") // a panic of the compiler brings its stack
	problem := &config.Problem{Message: "is no " + word + ": " + message}
	at := ""
	var located *file.Error
	if errors.As(err, &located) {
		problem.Message = fmt.Sprintf("is no %s: line %d, column %d: %s", word, located.Line, located.Column+1, located.Message)
		if runes := []rune(text); located.From >= 0 && located.From <= len(runes) {
			at = string(runes[located.From:])
		}
	}
	if _, name, ok := strings.Cut(problem.Message, "unknown name "); ok {
		problem.Hint = unknownHint(name, strings.TrimPrefix(at, name))
	}
	if strings.Contains(problem.Message, `unexpected token Operator("=")`) {
		problem.Hint = "use == to compare"
	}
	return problem
}

// members is what stands behind a name to read something within it.
var members = regexp.MustCompile(`^(\??\.[\p{L}_$][\p{L}\p{N}_$]*|\[[0-9]+\])+`)

// unknownHint says what a name that nobody knows is meant for, by what stands
// behind it: a function, something within the event, or one of its names.
func unknownHint(name, behind string) string {
	names := "names: body, header, query, form, " + strings.Join(path.EventNames(), ", ")
	if strings.HasPrefix(strings.TrimSpace(behind), "(") {
		near := ""
		if near = config.Nearest(name, Functions()); near != "" {
			near = "did you mean " + near + "? "
		}
		return near + names + "; functions: " + strings.Join(Functions(), ", ")
	}
	within := members.FindString(behind)
	near := path.RootNear(name)
	if own := config.Nearest(name, path.EventNames()); own != "" && within == "" {
		near = own
	}
	if near == "" {
		near = "body." + name + within
	}
	return "did you mean " + near + "? " + names
}

// of evaluates the expression for an event. The error is permanent but where
// the context ended.
func (e *expression) of(ctx context.Context, s *subject) (any, error) {
	r := &run{ctx: ctx, word: e.word, subject: s, places: e.places, values: make([]any, len(e.places)), read: make([]bool, len(e.places))}
	env := map[string]any{runName: r}
	for _, name := range path.EventNames() {
		env[name] = s.text(name)
	}
	machine := vm.VM{MemoryBudget: maxMemory}
	out, err := machine.Run(e.program, env)
	if err != nil {
		return nil, r.explain(err)
	}
	return out, nil
}
