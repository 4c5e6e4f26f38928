package handlers

import (
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"creel/path"
)

// The names of what the rewriter puts into a tree. No expression can spell
// them.
const (
	runName    = "run()"
	placeName  = "place()"
	memberName = "member()"
	settleName = "settle()"
	tickName   = "tick()"
	keepName   = "keep()"
	plusName   = "plus()"
	minusName  = "minus()"
	timesName  = "times()"
	sumName    = "sum()"
)

func roots() []path.Root { return []path.Root{path.Body, path.Header, path.Query, path.Form} }

// place is a place of the event that a condition reads.
type place struct {
	root  path.Root
	steps []placeStep
	path  path.Path // of all the steps; none for a whole root
}

type placeStep struct {
	name     string
	optional bool // reached by ?.
}

// rewriter turns what an expression says about the event into calls that read
// the event: body.a.b becomes one place of the path language, every other
// member access one that fails where nothing stands, and every step of a loop
// is counted. ast.Walk shows it the leaves first.
type rewriter struct {
	places []place
	calls  map[ast.Node]int // calls of place, by index
	err    error
}

// Visit implements ast.Visitor.
func (w *rewriter) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		w.identifier(node, n)
	case *ast.MemberNode:
		w.member(node, n)
	case *ast.ChainNode:
		ast.Patch(node, call(settleName, n.Node))
	case *ast.VariableDeclaratorNode:
		if _, isRoot := rootNamed(n.Name); isRoot {
			w.fail(n, "cannot redeclare "+n.Name)
		}
	case *ast.CallNode:
		if _, named := n.Callee.(*ast.IdentifierNode); !named {
			w.fail(n, "only functions can be called")
		}
	case *ast.PredicateNode:
		n.Node = &ast.SequenceNode{Nodes: []ast.Node{call(tickName), n.Node}}
	case *ast.BuiltinNode:
		w.builtin(node, n)
	case *ast.BinaryNode:
		w.binary(node, n)
	}
}

// binary makes sums exact and bounds the memory of texts that are put together.
func (w *rewriter) binary(node *ast.Node, n *ast.BinaryNode) {
	name, ok := exact()[n.Operator]
	switch {
	case ok && !written(n.Left) && !written(n.Right):
		ast.Patch(node, call(name, n.Left, n.Right))
	case n.Operator == "+":
		ast.Patch(node, call(keepName, n))
	}
}

// exact are the operators that would wrap around, with what replaces them.
func exact() map[string]string {
	return map[string]string{"+": plusName, "-": minusName, "*": timesName}
}

// written leaves what is no number to the checker of the language.
func written(n ast.Node) bool {
	switch n.(type) {
	case *ast.StringNode, *ast.BoolNode, *ast.NilNode, *ast.ArrayNode, *ast.MapNode:
		return true
	}
	return false
}

// builtin refuses what is no function of ours, bounds the memory of what a map
// keeps, and makes sums exact. The parser knows the functions with predicates
// by itself, whether they are disabled or not.
func (w *rewriter) builtin(node *ast.Node, n *ast.BuiltinNode) {
	if !slices.Contains(Functions(), n.Name) {
		w.fail(n, "unknown name "+n.Name)
	}
	if n.Name == "sum" && len(n.Arguments) == 1 {
		ast.Patch(node, call(sumName, n.Arguments[0]))
	}
	if n.Name != "map" && n.Name != "sum" || len(n.Arguments) != 2 {
		return
	}
	predicate, ok := n.Arguments[1].(*ast.PredicateNode)
	if !ok {
		return
	}
	predicate.Node = call(keepName, predicate.Node)
	if n.Name == "sum" {
		each := &ast.BuiltinNode{Name: "map", Arguments: n.Arguments}
		each.SetLocation(n.Location())
		ast.Patch(node, call(sumName, each))
	}
}

func (w *rewriter) identifier(node *ast.Node, n *ast.IdentifierNode) {
	if n.Value == "$env" {
		w.fail(n, "$env is not available; use the names themselves")
		return
	}
	if root, ok := rootNamed(n.Value); ok {
		w.read(node, place{root: root})
	}
}

func rootNamed(word string) (path.Root, bool) {
	for _, root := range roots() {
		if word == root.String() {
			return root, true
		}
	}
	return 0, false
}

func (w *rewriter) member(node *ast.Node, n *ast.MemberNode) {
	name, fixed := stepName(n.Property)
	if i, isPlace := w.calls[n.Node]; isPlace && fixed {
		base := w.places[i]
		if base.root == path.Body || len(base.steps) == 0 {
			steps := append(base.steps[:len(base.steps):len(base.steps)], placeStep{name: name, optional: n.Optional})
			w.read(node, place{root: base.root, steps: steps})
			return
		}
	}
	label := "a member" // what the event names is not repeated in errors
	if fixed {
		label = "member " + path.Escape(name)
	}
	ast.Patch(node, call(memberName, n.Node, n.Property, &ast.BoolNode{Value: n.Optional}, &ast.StringNode{Value: label}))
}

// stepName is the step of the path language that a property is, where it is
// written out.
func stepName(property ast.Node) (string, bool) {
	switch p := property.(type) {
	case *ast.StringNode:
		return p.Value, true
	case *ast.IntegerNode:
		return strconv.Itoa(p.Value), p.Value >= 0
	}
	return "", false
}

// read replaces a node by the call that reads a place.
func (w *rewriter) read(node *ast.Node, p place) {
	if w.calls == nil {
		w.calls = map[ast.Node]int{}
	}
	if len(p.steps) > 0 {
		var err error
		if p.path, err = path.Parse(p.text(len(p.steps))); err != nil {
			w.fail(*node, err.Error())
		}
	}
	reading := call(placeName, &ast.IntegerNode{Value: len(w.places)})
	w.calls[reading] = len(w.places)
	w.places = append(w.places, p)
	ast.Patch(node, reading)
}

func (w *rewriter) fail(n ast.Node, message string) {
	if w.err == nil {
		w.err = &file.Error{Location: n.Location(), Line: 1, Column: n.Location().From, Message: message}
	}
}

func call(name string, arguments ...ast.Node) *ast.CallNode {
	return &ast.CallNode{
		Callee:    &ast.IdentifierNode{Value: name},
		Arguments: append([]ast.Node{&ast.IdentifierNode{Value: runName}}, arguments...),
	}
}
