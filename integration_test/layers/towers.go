package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
)

// towers lists the selectors of a package that reach a field or method through more than one embedded field, whether
// the source names these fields or not: "file:line: a.b is 2 embedded fields away". A reader finds the type of such a
// field or method only after a search through as many files.
func towers(dir string) (found []string, err error) {
	fset := token.NewFileSet()
	files, imports, err := parse(dir, fset)
	if err != nil {
		return nil, err
	}
	info := &types.Info{Selections: make(map[*ast.SelectorExpr]*types.Selection)}
	if _, err := (&types.Config{Importer: imports}).Check(dir, fset, files, info); err != nil {
		return nil, err
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if through := embedded(info, s, false); through > 1 {
				at := fset.Position(s.Pos())
				found = append(found, fmt.Sprintf("%s:%d: %s is %d embedded fields away", filepath.Base(at.Filename), at.Line, types.ExprString(s), through))
				return false
			}
			return true
		})
	}
	return found, nil
}

// embedded counts the embedded fields that a selector goes through. The last field counts only if inside is set.
func embedded(info *types.Info, e ast.Expr, inside bool) (n int) {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return 0
	}
	sel := info.Selections[s]
	if sel == nil {
		return 0
	}
	n = len(sel.Index()) - 1
	if v, ok := sel.Obj().(*types.Var); !ok || !v.Embedded() {
		if inside {
			return 0 // the field has a name of its own
		}
	} else if inside {
		n++
	}
	return n + embedded(info, s.X, true)
}
