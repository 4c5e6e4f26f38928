package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// comments are what the source says about its types: the text beside each
// field, and the values of the types that list theirs.
type comments struct {
	types  map[string]string            // "event.Action"
	fields map[string]map[string]string // by type and Go name
	values map[string][]string          // of named texts
}

// readComments reads the rooms whose types the API shows.
func readComments(t *testing.T) *comments {
	t.Helper()
	c := &comments{types: map[string]string{}, fields: map[string]map[string]string{}, values: map[string][]string{}}
	for room, folder := range map[string]string{"event": "../../event", "admin": "..", "api": ".", "app": "../../app", "source": "../../source"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				if d, ok := decl.(*ast.GenDecl); ok {
					c.read(room, d)
				}
			}
		}
	}
	return c
}

func (c *comments) read(room string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			name := room + "." + s.Name.Name
			c.types[name] = sentence(s.Name.Name, d.Doc.Text())
			if fields, ok := s.Type.(*ast.StructType); ok {
				c.fields[name] = map[string]string{}
				for _, field := range fields.Fields.List {
					text := strings.TrimSpace(field.Comment.Text() + " " + field.Doc.Text())
					for _, n := range field.Names {
						c.fields[name][n.Name] = oneLine(text)
					}
				}
			}
		case *ast.ValueSpec:
			of, ok := s.Type.(*ast.Ident)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, value := range s.Values {
				if text, ok := value.(*ast.BasicLit); ok && text.Kind == token.STRING {
					plain, _ := strconv.Unquote(text.Value)
					c.values[room+"."+of.Name] = append(c.values[room+"."+of.Name], plain)
				}
			}
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// sentence is the comment of a type without its name in front.
func sentence(name, text string) string {
	text = oneLine(text)
	text = strings.TrimPrefix(text, name+" ")
	text = strings.TrimPrefix(text, "is ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// nameIn is how comments know a type.
func nameIn(of reflect.Type) string {
	room := of.PkgPath()[strings.LastIndex(of.PkgPath(), "/")+1:]
	return room + "." + of.Name()
}
