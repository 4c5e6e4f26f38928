package handlers

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"creel/path"
)

const boolKind = reflect.Bool

// The names of what the rewriter puts into a tree. No expression can spell
// them.
const (
	runName    = "run()"
	placeName  = "place()"
	memberName = "member()"
	settleName = "settle()"
	tickName   = "tick()"
	keepName   = "keep()"
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
		w.builtin(n)
	case *ast.BinaryNode:
		if n.Operator == "+" && couldBeText(n.Left) && couldBeText(n.Right) {
			ast.Patch(node, call(keepName, n))
		}
	}
}

// builtin refuses what is no function of ours and bounds the memory of what a
// map keeps. The parser knows the functions with predicates by itself, whether
// they are disabled or not.
func (w *rewriter) builtin(n *ast.BuiltinNode) {
	if !slices.Contains(Functions(), n.Name) {
		w.fail(n, "unknown name "+n.Name)
	}
	if n.Name != "map" || len(n.Arguments) != 2 {
		return
	}
	if predicate, ok := n.Arguments[1].(*ast.PredicateNode); ok {
		predicate.Node = call(keepName, predicate.Node)
	}
}

// couldBeText leaves alone a sum in which a number is written.
func couldBeText(n ast.Node) bool {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return false
	}
	return true
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
