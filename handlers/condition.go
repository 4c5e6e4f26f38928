package handlers

import (
	"context"
	"reflect"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"creel/config"
)

// condition is the compiled when of a rule.
type condition struct{ *expression }

// compileCondition checks a when. The problem says where it is wrong.
func compileCondition(text string) (*condition, *config.Problem) {
	e, problem := compileExpression("condition", text, expr.AsKind(reflect.Bool))
	if problem != nil {
		if problem.Hint == "" {
			problem.Hint = "such as body.amount > 0"
		}
		return nil, problem
	}
	return &condition{e}, nil
}

// isBare tells whether a text that compiles is a value of the event and nothing
// more: no comparison, no call, nothing that gives true or false by itself.
func isBare(text string) bool {
	tree, err := parser.Parse(text)
	if err != nil {
		return false
	}
	node := tree.Node
	if chain, ok := node.(*ast.ChainNode); ok {
		node = chain.Node
	}
	switch node.(type) {
	case *ast.MemberNode, *ast.IdentifierNode:
		return true
	}
	return false
}

// holds evaluates the condition for an event. The error is permanent but where
// the context ended.
func (c *condition) holds(ctx context.Context, s *subject) (bool, error) {
	out, err := c.of(ctx, s)
	held, _ := out.(bool) // the program ends in a cast
	return held, err
}
