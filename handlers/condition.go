package handlers

import (
	"context"
	"errors"
	"fmt"
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

// The budgets of a condition.
const (
	maxText  = 8 << 10 // bytes of the expression
	maxNodes = 1000    // nodes of its syntax tree
	maxTicks = 1 << 20 // elements looked at in one evaluation
	// maxMemory bounds what one evaluation makes, in elements, and once more
	// what it keeps, in elements or in units of unitSize bytes of text.
	maxMemory = 1 << 20
	unitSize  = 16
)

// Functions are the functions that a condition may use. Left out are those
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

// condition is the compiled when of a rule.
type condition struct {
	program *vm.Program
	places  []place
}

// compileCondition checks an expression. The problem says where it is wrong.
func compileCondition(text string) (*condition, *config.Problem) {
	if len(text) > maxText {
		return nil, &config.Problem{Message: fmt.Sprintf("is longer than %d bytes", maxText), Hint: "split it into several rules, or write a Go handler"}
	}
	rewrite := &rewriter{}
	program, err := expr.Compile(text, append(limits(), environment(), functions(), expr.Patch(rewrite))...)
	if rewrite.err != nil {
		err = rewrite.err
	}
	if err != nil {
		return nil, conditionProblem(err)
	}
	return &condition{program: program, places: rewrite.places}, nil
}

func limits() []expr.Option {
	options := []expr.Option{
		expr.AsKind(boolKind), expr.MaxNodes(maxNodes),
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
	}
}

func conditionProblem(err error) *config.Problem {
	message, _, _ := strings.Cut(err.Error(), "\n") // a panic of the compiler brings its stack
	problem := &config.Problem{Message: "is no condition: " + message, Hint: "such as body.amount > 0"}
	var located *file.Error
	if errors.As(err, &located) {
		problem.Message = fmt.Sprintf("is no condition: line %d, column %d: %s", located.Line, located.Column+1, located.Message)
	}
	if strings.Contains(problem.Message, "unknown name") {
		problem.Hint = "names: body, header, query, form, " + strings.Join(path.EventNames(), ", ") + "; functions: " + strings.Join(Functions(), ", ")
	}
	return problem
}

// holds evaluates the condition for an event. The error is permanent but where
// the context ended.
func (c *condition) holds(ctx context.Context, s *subject) (bool, error) {
	r := &run{ctx: ctx, subject: s, places: c.places, values: make([]any, len(c.places)), read: make([]bool, len(c.places))}
	env := map[string]any{runName: r}
	for _, name := range path.EventNames() {
		env[name] = s.text(name)
	}
	machine := vm.VM{MemoryBudget: maxMemory}
	out, err := machine.Run(c.program, env)
	if err != nil {
		return false, r.explain(err)
	}
	held, _ := out.(bool) // the program ends in a cast
	return held, nil
}
