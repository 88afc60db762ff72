package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// call means that functions of file from call functions of file to.
type call struct{ from, to string }

// graph has the relations between a package's files, and between its types.
type graph struct {
	files []string                       // the base names, sorted
	calls map[call]map[string]int        // between files: the number of calls by "caller -> callee"
	needs map[string]map[string]struct{} // by file: the files with functions, methods, types and values that it mentions
	knows map[string]map[string]struct{} // by type name: the types that its fields and methods mention
	types int                            // how many types the package has

	open []string // the exported fields of the package's type Session
}

// draw makes the graph of the package in a folder, without its tests, with the files that
// are built on this system.
func draw(dir string) (*graph, error) {
	fset := token.NewFileSet()
	files, imports, err := parse(dir, fset)
	if err != nil {
		return nil, err
	}
	info := &types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)}
	pkg, err := (&types.Config{Importer: imports}).Check(dir, fset, files, info)
	if err != nil {
		return nil, err
	}
	g := &graph{open: openFields(pkg), needs: make(map[string]map[string]struct{}), calls: make(map[call]map[string]int), knows: make(map[string]map[string]struct{})}
	at := func(pos token.Pos) string { return filepath.Base(fset.Position(pos).Filename) }
	for _, f := range files {
		g.files = append(g.files, at(f.Pos()))
		g.addNeeds(pkg, info, f, at)
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				g.addFunc(pkg, info, d, at)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if t, ok := spec.(*ast.TypeSpec); ok {
						g.types++
						g.mentions(pkg, info, t.Name.Name, t)
					}
				}
			}
		}
	}
	slices.Sort(g.files)
	return g, nil
}

// parse reads a package's files, and returns an importer for the packages it imports.
func parse(dir string, fset *token.FileSet) ([]*ast.File, types.Importer, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", `{{.ImportPath}}	{{.Export}}	{{join .GoFiles " "}}`, ".")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list in %s: %w", dir, err)
	}
	exports := make(map[string]string)
	var names string // the files of the package itself, which go list prints last
	for line := range strings.Lines(string(out)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		exports[fields[0]], names = fields[1], fields[2]
	}
	var files []*ast.File
	for name := range strings.FieldsSeq(names) {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	return files, importer.ForCompiler(fset, "gc", lookup), nil
}

// addFunc adds the functions and types that a function or method mentions. A function that is
// passed on as a value is a call too, because it will be called.
func (g *graph) addFunc(pkg *types.Package, info *types.Info, d *ast.FuncDecl, at func(token.Pos) string) {
	from := at(d.Pos())
	caller := d.Name.Name
	if d.Recv != nil {
		owner := receiver(d)
		caller = owner + "." + caller
		g.mentions(pkg, info, owner, d)
	}
	ast.Inspect(d, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		f, ok := info.Uses[id].(*types.Func)
		if !ok || f.Pkg() != pkg || at(f.Pos()) == from {
			return true
		}
		c := call{from, at(f.Pos())}
		if g.calls[c] == nil {
			g.calls[c] = make(map[string]int)
		}
		g.calls[c][caller+" -> "+nameOf(f)]++
		return true
	})
}

// mentions records that type owner knows the types that are named in node n, one of the
// type's declarations or methods.
func (g *graph) mentions(pkg *types.Package, info *types.Info, owner string, n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		var other string
		switch o := info.Uses[id].(type) {
		case *types.TypeName:
			if o.Pkg() == pkg {
				other = o.Name()
			}
		case *types.Func: // a method that is called: its receiver's type counts
			if r := o.Signature().Recv(); o.Pkg() == pkg && r != nil {
				other = named(r.Type())
			}
		}
		if other != "" && other != owner {
			if g.knows[owner] == nil {
				g.knows[owner] = make(map[string]struct{})
			}
			g.knows[owner][other] = struct{}{}
		}
		return true
	})
}

// addNeeds records which other files a file needs: those that declare what it mentions, other
// than fields.
func (g *graph) addNeeds(pkg *types.Package, info *types.Info, f *ast.File, at func(token.Pos) string) {
	from := at(f.Pos())
	g.needs[from] = make(map[string]struct{})
	ast.Inspect(f, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		o := info.Uses[id]
		if o == nil || o.Pkg() != pkg || at(o.Pos()) == from {
			return true
		}
		if _, method := o.(*types.Func); method || o.Parent() == pkg.Scope() {
			g.needs[from][at(o.Pos())] = struct{}{}
		}
		return true
	})
}

func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	return t.(*ast.Ident).Name
}

func nameOf(f *types.Func) string {
	if r := f.Signature().Recv(); r != nil {
		return named(r.Type()) + "." + f.Name()
	}
	return f.Name()
}

func named(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// circle returns the largest set of types that all lead to each other.
func (g *graph) circle() []string { return circleOf(g.knows) }
