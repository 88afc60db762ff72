package integration_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// folder is a package as go list describes it: its folder and its files.
type folder struct {
	pkg, dir string // pkg without the module's path
	files    []string
	tests    []string
}

// folders lists the packages that a program can import.
func folders(t *testing.T) []folder {
	t.Helper()
	const format = `{{if ne .Name "main"}}{{.ImportPath}}|{{.Dir}}|{{join .GoFiles ","}}|{{join .TestGoFiles ","}},{{join .XTestGoFiles ","}}{{end}}`
	var out []byte
	for _, dir := range moduleFolders(t) {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-f", format, "./...")
		cmd.Dir = dir
		part, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v", dir, err)
		}
		out = append(out, part...)
	}
	split := func(s string) []string {
		return slices.DeleteFunc(strings.Split(s, ","), func(f string) bool { return f == "" })
	}
	var found []folder
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 4 || f[2] == "" { // main packages, and folders of tests only
			continue
		}
		pkg := strings.TrimPrefix(f[0], module+"/")
		if strings.Contains("/"+pkg+"/", "/internal/") || strings.HasPrefix(pkg, "examples/") || slices.Contains(unpromised, pkg) {
			continue
		}
		found = append(found, folder{pkg: pkg, dir: f[1], files: split(f[2]), tests: split(f[3])})
	}
	if len(found) < 10 {
		t.Fatalf("go list returned only %d packages", len(found))
	}
	return found
}

// unpromised are packages that are only for other modules of this project. They cannot be internal,
// since those modules import them. Their comments say that no promise of compatibility covers them.
var unpromised = []string{"interceptors/protolock"}

// TestDocumentedIsEverythingExported fails for every exported name of every importable package
// without its own comment: types, their fields and methods, functions, constants, variables.
// Each package also needs one package comment.
func TestDocumentedIsEverythingExported(t *testing.T) {
	for _, f := range folders(t) {
		fset := token.NewFileSet()
		packageDocs := 0
		for _, name := range f.files {
			file, err := parser.ParseFile(fset, f.dir+"/"+name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if file.Doc != nil {
				packageDocs++
			}
			if ast.IsGenerated(file) {
				continue // its comments come from the .proto file
			}
			for _, missing := range undocumented(file) {
				t.Errorf("%s: %s has no comment", fset.Position(missing.at), missing.name)
			}
		}
		if packageDocs != 1 {
			t.Errorf("package %s has %d package comments, want 1", f.pkg, packageDocs)
		}
	}
}

// TestDocumentedIsEveryPackage: every package that a program can import is mentioned in
// the table of packages and in the changelog.
func TestDocumentedIsEveryPackage(t *testing.T) {
	for _, document := range []string{"docs/adapters.md", "CHANGELOG.md"} {
		text, err := os.ReadFile("../" + document)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range folders(t) {
			if strings.HasPrefix(f.pkg, "integration_test/") {
				continue // only this module's tests use it
			}
			if !strings.Contains(string(text), "`"+f.pkg+"`") {
				t.Errorf("%s does not mention package %s", document, f.pkg)
			}
		}
	}
}

// bare is an exported name without a comment.
type bare struct {
	name string
	at   token.Pos
}

// undocumented lists the names that a file exports without a comment.
func undocumented(file *ast.File) (found []bare) {
	look := func(name *ast.Ident, of string, comments ...*ast.CommentGroup) {
		if name.IsExported() && !slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return strings.TrimSpace(c.Text()) != "" }) {
			found = append(found, bare{of + name.Name, name.Pos()})
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				look(d.Name, "", d.Doc)
			} else if of := receiver(d); ast.IsExported(of) {
				look(d.Name, of+".", d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					own := []*ast.CommentGroup{s.Doc, s.Comment}
					if !d.Lparen.IsValid() {
						own = append(own, d.Doc) // a comment of the declaration counts for a single name
					}
					for _, name := range s.Names {
						look(name, "", own...)
					}
				case *ast.TypeSpec:
					look(s.Name, "", s.Doc, d.Doc)
					if s.Name.IsExported() {
						for _, m := range members(s.Type) {
							for _, name := range m.Names {
								look(name, s.Name.Name+".", m.Doc, m.Comment)
							}
						}
					}
				}
			}
		}
	}
	return found
}

// receiver returns the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	x := d.Recv.List[0].Type
	if p, ok := x.(*ast.StarExpr); ok {
		x = p.X
	}
	return strings.TrimRight(fmt.Sprint(x), "[]")
}

// members returns the fields of a struct, or the methods of an interface.
func members(x ast.Expr) []*ast.Field {
	switch x := x.(type) {
	case *ast.StructType:
		return x.Fields.List
	case *ast.InterfaceType:
		return x.Methods.List
	}
	return nil
}

func TestDocumentedCheckSeesWhatIsMissing(t *testing.T) {
	const source = `package p

func Bare() {}

// F is fine.
func F() {}

// T is fine, its Field and its M are not.
type T struct {
	Field  int
	Named  int // fine
	hidden int
}

func (t *T) M() {}

func (u unexported) M() {}

// One comment does not do for a group.
const (
	A = 1
	B = 2 // fine
)

// C is fine.
var C int
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range undocumented(file) {
		names = append(names, b.name)
	}
	if got, want := strings.Join(names, " "), "Bare T.Field T.M A"; got != want {
		t.Errorf("undocumented: %s, want %s", got, want)
	}
}
