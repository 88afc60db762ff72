package zklock_test

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestErrorOpIsDocumented compares the list in the documentation of Error.Op with the
// values that the package uses.
func TestErrorOpIsDocumented(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	doc := ""
	fset := gotoken.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "Error" {
					used = append(used, opOf(t, fset, n))
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "annotate" {
					used = append(used, literal(t, fset, n.Args[1]))
				}
			case *ast.FuncDecl:
				return n.Name.Name != "annotate" // its callers have the values
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && n.Name.Name == "Error" {
					for _, f := range s.Fields.List {
						if f.Names[0].Name == "Op" {
							doc = f.Doc.Text()
						}
					}
				}
			}
			return true
		})
	}
	slices.Sort(used)
	used = slices.Compact(used)
	_, list, ok := strings.Cut(doc, ": ")
	documented := strings.Split(strings.TrimSuffix(strings.Join(strings.Fields(list), " "), "."), ", ")
	if !ok || !slices.Equal(documented, used) {
		t.Errorf("the documentation of Error.Op lists %q, the package uses %q", documented, used)
	}
}

// opOf returns the Op of a literal of Error. Op must be a string literal there, so that the
// values can be listed.
func opOf(t *testing.T, fset *gotoken.FileSet, lit *ast.CompositeLit) string {
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok || kv.Key.(*ast.Ident).Name != "Op" {
			continue
		}
		return literal(t, fset, kv.Value)
	}
	t.Errorf("%v: an Error has no Op", fset.Position(lit.Pos()))
	return ""
}

func literal(t *testing.T, fset *gotoken.FileSet, e ast.Expr) string {
	value, ok := e.(*ast.BasicLit)
	if !ok {
		t.Errorf("%v: the Op of an Error is not a string literal", fset.Position(e.Pos()))
		return ""
	}
	op, err := strconv.Unquote(value.Value)
	if err != nil {
		t.Fatal(err)
	}
	return op
}
