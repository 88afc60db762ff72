package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// core has the folders of the core's packages, below the folder of the public one.
var core = []string{".", "internal/place", "internal/session", "internal/queue", "internal/lease"}

// reportCore prints what a reader has to keep in mind of each package of the core: lines, types,
// and the largest circles of files and of types. Then it prints what of session.Session other
// packages of the core lock and write.
func reportCore(w io.Writer, dir string) error {
	fmt.Fprintf(w, "\n%-17s %5s %5s %5s  %s  %s\n", "package", "lines", "files", "types", "circle: files", "types")
	total := 0
	var locks, writes []string
	for _, folder := range core {
		at := filepath.Join(dir, folder)
		g, err := draw(at)
		if err != nil {
			return err
		}
		n, err := countLines(at)
		if err != nil {
			return err
		}
		total += n
		fmt.Fprintf(w, "%-17s %5d %5d %5d  %13d  %5d\n", folder, n, len(g.files), g.types, len(circleOf(g.needs)), len(g.circle()))
		locks, writes = append(locks, g.locks...), append(writes, g.writes...)
	}
	fmt.Fprintf(w, "%-17s %5d\n\n", "together", total)
	writes = slices.Compact(slices.Sorted(slices.Values(writes)))
	fmt.Fprintf(w, "%d uses of the mutex of session.Session outside its package\n", len(locks))
	fmt.Fprintf(w, "%d exported fields of session.Session that other packages write: %s\n", len(writes), strings.Join(writes, " "))
	return nil
}

// countLines counts the lines of a package's files without its tests, on all systems.
func countLines(dir string) (n int, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			return 0, err
		}
		n += strings.Count(string(text), "\n")
	}
	return n, err
}

// addSession finds where a file of another package locks session.Session, and where it writes
// one of its fields.
func (g *graph) addSession(info *types.Info, f *ast.File, at func(token.Pos) string) {
	field := func(e ast.Expr) (of *types.Var) {
		if index, ok := e.(*ast.IndexExpr); ok {
			e = index.X
		}
		if s, ok := e.(*ast.SelectorExpr); ok {
			if v, ok := info.Uses[s.Sel].(*types.Var); ok && v.IsField() && slices.Contains(g.session, v) {
				return v
			}
		}
		return nil
	}
	written := func(all ...ast.Expr) {
		for _, e := range all {
			if v := field(e); v != nil {
				g.writes = append(g.writes, v.Name())
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if v := field(n); v != nil && v.Type().String() == "sync.Mutex" {
				g.locks = append(g.locks, at(n.Pos()))
			}
		case *ast.AssignStmt:
			written(n.Lhs...)
		case *ast.IncDecStmt:
			written(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				written(n.X)
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "delete" || id.Name == "clear") {
				written(n.Args[0])
			}
		}
		return true
	})
}

// sessionFields returns the fields of session.Session, if a package imports it.
func sessionFields(pkg *types.Package) (fields []*types.Var) {
	for _, p := range pkg.Imports() {
		if !strings.HasSuffix(p.Path(), "/internal/session") {
			continue
		}
		if o := p.Scope().Lookup("Session"); o != nil {
			for f := range o.Type().Underlying().(*types.Struct).Fields() {
				fields = append(fields, f)
			}
		}
	}
	return fields
}

// circleOf returns the largest set of names that all lead to each other.
func circleOf(next map[string]map[string]struct{}) (largest []string) {
	reaches := make(map[string]map[string]bool, len(next))
	for from := range next {
		found := make(map[string]bool)
		for todo := []string{from}; len(todo) > 0; {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for other := range next[at] {
				if !found[other] {
					found[other] = true
					todo = append(todo, other)
				}
			}
		}
		reaches[from] = found
	}
	for _, from := range slices.Sorted(maps.Keys(reaches)) {
		var same []string
		for other := range reaches[from] {
			if reaches[other][from] {
				same = append(same, other)
			}
		}
		if len(same) > len(largest) {
			largest = same
		}
	}
	slices.Sort(largest)
	return largest
}
