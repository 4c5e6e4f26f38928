package source

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestConstantTime: no file of this package compares bytes, or texts made of
// bytes, in a way whose time tells where they differ.
func TestConstantTime(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	checked, compared := 0, 0
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		ast.Inspect(file, func(n ast.Node) bool {
			if name, bad := openComparison(n); bad {
				t.Errorf("%s: %s is no way to compare a signature; use sameBytes or sameText", set.Position(n.Pos()), name)
			}
			if call, ok := n.(*ast.CallExpr); ok && selector(call) == "hmac.Equal" {
				compared++
			}
			return true
		})
	}
	if checked < 15 || compared < 2 {
		t.Errorf("%d files, %d comparisons: the check sees too little", checked, compared)
	}
}

func openComparison(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.CallExpr:
		switch name := selector(n); name {
		case "bytes.Equal", "bytes.Compare", "bytes.HasPrefix", "bytes.EqualFold", "slices.Equal", "reflect.DeepEqual", "subtle.ConstantTimeCompare":
			return name, true
		}
	case *ast.BinaryExpr:
		if n.Op != token.EQL && n.Op != token.NEQ {
			return "", false
		}
		for _, side := range []ast.Expr{n.X, n.Y} {
			if call, ok := side.(*ast.CallExpr); ok && isName(call.Fun, "string") {
				return "== on bytes", true
			}
			if named, ok := side.(*ast.Ident); ok && (named.Name == "sum" || named.Name == "mac" || named.Name == "raw" || named.Name == "digest") {
				if other, ok := n.Y.(*ast.Ident); !ok || other.Name != "nil" {
					return "== on " + named.Name, true
				}
			}
		}
	}
	return "", false
}

func selector(call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	from, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return from.Name + "." + sel.Sel.Name
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
