package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const (
	maxFileLines = 500
	maxFuncLines = 60
	maxMainLines = 30
)

// folder is the Go files of one folder that are no tests, and those that are.
type folder struct {
	name  string
	files []*ast.File
	tests []*ast.File
}

// readTree parses every Go file of the tree, whatever its build tags say.
func readTree(t *testing.T) (*token.FileSet, []*folder) {
	t.Helper()
	set := token.NewFileSet()
	byName := map[string]*folder{}
	var folders []*folder
	root := treeRoot(t)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "bench" && filepath.Dir(path) == root {
				return filepath.SkipDir // bench has modules of its own
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		f := byName[name]
		if f == nil {
			f = &folder{name: name}
			byName[name] = f
			folders = append(folders, f)
		}
		if strings.HasSuffix(path, "_test.go") {
			f.tests = append(f.tests, file)
		} else {
			f.files = append(f.files, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, folders
}

// One comment a folder says what the package guarantees and who may import
// it.
func TestPackageComments(t *testing.T) {
	t.Parallel()
	_, folders := readTree(t)
	for _, f := range folders {
		var comments []string
		for _, file := range f.files {
			if file.Doc != nil {
				comments = append(comments, file.Doc.Text())
			}
		}
		if problem := commentProblem(f.name, comments); problem != "" && len(f.files) > 0 {
			t.Errorf("%s: %s", f.name, problem)
		}
	}
}

func commentProblem(folder string, comments []string) string {
	if len(comments) != 1 {
		return "must have one package comment"
	}
	if folder == "." || strings.HasPrefix(folder, "examples") {
		return "" // nobody imports a main package
	}
	// The first paragraph, and early in it.
	first, _, _ := strings.Cut(comments[0], "\n\n")
	switch words := strings.Join(strings.Fields(first), " "); {
	case !strings.Contains(words[:min(len(words), 400)], "guarantee"):
		return "its package comment does not start with what it guarantees"
	case !strings.Contains(words, "import"):
		return "its package comment does not say who may import it"
	}
	return ""
}

// Files and functions stay readable.
func TestFilesAreSmall(t *testing.T) {
	t.Parallel()
	set, folders := readTree(t)
	for _, f := range folders {
		for _, file := range f.files {
			at := set.File(file.Pos())
			name := filepath.Join(f.name, filepath.Base(at.Name()))
			if n := at.LineCount(); n > maxFileLines {
				t.Errorf("%s has %d lines, at most %d", name, n, maxFileLines)
			}
			if n := at.LineCount(); name == "main.go" && n > maxMainLines {
				t.Errorf("main.go has %d lines, at most %d", n, maxMainLines)
			}
			for _, declaration := range file.Decls {
				function, ok := declaration.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if n := set.Position(function.End()).Line - set.Position(function.Pos()).Line + 1; n > maxFuncLines {
					t.Errorf("%s: %s has %d lines, at most %d", name, function.Name.Name, n, maxFuncLines)
				}
			}
		}
	}
}

// No package keeps state: what stands outside of functions is never changed.
func TestNoPackageState(t *testing.T) {
	t.Parallel()
	_, folders := readTree(t)
	for _, f := range folders {
		if strings.HasPrefix(f.name, "internal") {
			continue // what serves tests may build a binary once
		}
		for _, name := range packageState(f.files) {
			t.Errorf("%s: the package variable %s is state", f.name, name)
		}
	}
}

// packageState lists the package variables that hold state: those that are
// made to be changed (channels, locks, counters) and those that some function
// changes. It looks at names only, so a variable that is changed through a
// pointer or by its methods escapes it.
func packageState(files []*ast.File) []string {
	declared := map[string]*ast.ValueSpec{}
	var state []string
	for _, file := range files {
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				embedded := isEmbedded(group.Doc) || isEmbedded(value.Doc)
				for i, name := range value.Names {
					if name.Name == "_" || embedded {
						continue
					}
					declared[name.Name] = value
					if isMutableType(value.Type) || i < len(value.Values) && isMutable(value.Values[i]) {
						state = append(state, name.Name)
					}
				}
			}
		}
	}
	changed := map[string]bool{}
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			for _, target := range targets(node) {
				if root := rootOf(target); root != nil && isPackageLevel(root, declared) && !changed[root.Name] {
					changed[root.Name] = true
					state = append(state, root.Name)
				}
			}
			return true
		})
	}
	return state
}

func isEmbedded(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, line := range doc.List {
		if strings.HasPrefix(line.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// isMutable tells whether a first value is one that only makes sense to be
// changed.
func isMutable(value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.CallExpr:
		function, ok := v.Fun.(*ast.Ident)
		return ok && (function.Name == "make" || function.Name == "new")
	case *ast.UnaryExpr:
		return v.Op == token.AND && isMutable(v.X)
	case *ast.CompositeLit:
		return isMutableType(v.Type)
	}
	return false
}

func isMutableType(of ast.Expr) bool {
	switch v := of.(type) {
	case *ast.ChanType:
		return true
	case *ast.StarExpr:
		return isMutableType(v.X)
	case *ast.IndexExpr: // atomic.Pointer[T]
		return isMutableType(v.X)
	case *ast.StructType:
		for _, field := range v.Fields.List {
			if isMutableType(field.Type) {
				return true
			}
		}
	case *ast.SelectorExpr:
		from, ok := v.X.(*ast.Ident)
		return ok && (from.Name == "sync" || from.Name == "atomic")
	}
	return false
}

// targets lists what a statement changes.
func targets(node ast.Node) []ast.Expr {
	switch n := node.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.CallExpr:
		if function, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (function.Name == "delete" || function.Name == "clear") {
			return n.Args[:1]
		}
	}
	return nil
}

func rootOf(expression ast.Expr) *ast.Ident {
	switch e := expression.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return rootOf(e.X)
	case *ast.IndexExpr:
		return rootOf(e.X)
	case *ast.StarExpr:
		return rootOf(e.X)
	case *ast.ParenExpr:
		return rootOf(e.X)
	}
	return nil
}

// isPackageLevel tells a package variable from a local one of its name: the
// parser resolves local names, and those of the same file.
func isPackageLevel(name *ast.Ident, declared map[string]*ast.ValueSpec) bool {
	spec, ok := declared[name.Name]
	return ok && (name.Obj == nil || name.Obj.Decl == spec)
}

// Every fuzz target starts from something: seeds in the code or a corpus.
func TestFuzzTargetsHaveSeeds(t *testing.T) {
	t.Parallel()
	root := treeRoot(t)
	_, folders := readTree(t)
	for _, f := range folders {
		for _, file := range f.tests {
			for _, declaration := range file.Decls {
				function, ok := declaration.(*ast.FuncDecl)
				if !ok || function.Recv != nil || !strings.HasPrefix(function.Name.Name, "Fuzz") {
					continue
				}
				corpus, err := filepath.Glob(filepath.Join(root, f.name, "testdata", "fuzz", function.Name.Name, "*"))
				if err != nil {
					t.Fatal(err)
				}
				if len(corpus) == 0 && !callsAdd(function) {
					t.Errorf("%s: %s has no seed", f.name, function.Name.Name)
				}
			}
		}
	}
}

func callsAdd(function *ast.FuncDecl) bool {
	found := false
	ast.Inspect(function, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		found = found || ok && selector.Sel.Name == "Add"
		return true
	})
	return found
}

// Each rule of shape sees what it forbids.
func TestShapeProblemsAreSeen(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"var ErrX = errors.New(\"x\")": "",
		"var table = map[string]int{\"a\": 1}\nfunc f() int { return table[\"a\"] }": "",
		"//go:embed x\nvar files embed.FS":                                           "",
		"var x = 1\nfunc f() { x := 2; x = 3; _ = x }":                               "",
		"var _ fmt.Stringer = (*T)(nil)":                                             "",
		"var count int\nfunc f() { count += 1 }":                                     "count",
		"var dummy [8]byte\nfunc f() []byte { return dummy[:] }":                     "",
		"var once sync.Once":                                                         "once",
		"var p atomic.Pointer[int]":                                                  "p",
		"var s struct { mu sync.Mutex }":                                             "s",
		"var x = 1\nfunc f() { x = 2 }":                                              "x",
		"var x = 1\nfunc f() { x++ }":                                                "x",
		"var m = map[string]int{}\nfunc f() { m[\"a\"] = 1 }":                        "m",
		"var m = map[string]int{}\nfunc f() { delete(m, \"a\") }":                    "m",
		"var t = T{}\nfunc f() { t.n = 1 }":                                          "t",
		"var c = make(chan int)":                                                     "c",
		"var mu = sync.Mutex{}":                                                      "mu",
		"var n = &atomic.Int64{}":                                                    "n",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+code, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(packageState([]*ast.File{file}), " "); got != want {
			t.Errorf("%s\ngot %q, want %q", code, got, want)
		}
	}
	for want, comments := range map[string][]string{
		"":             {"Package x is a room. It guarantees much and nobody may import it.\n"},
		"one package":  {"Package x guarantees much; import it.", "Package x."},
		"guarantees":   {"Package x is a room; import it.\n\nIt guarantees much."},
		"who may":      {"Package x guarantees much."},
		"must have on": nil,
	} {
		got := commentProblem("x", comments)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", comments, got, want)
		}
	}
}
