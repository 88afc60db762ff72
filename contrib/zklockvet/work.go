package zklockvet

import (
	"go/ast"
	"go/token"
	"iter"
	"slices"
)

// work yields the calls in a section that are part of the work under its lock, as far as one can
// see. Goroutines, deferred calls and callbacks may be meant to outlive the lock, and so may the
// handling of a failure, which the loss of the lock may be, and what waits for the end of a context or of the lock.
func (s *sections) work(at section) iter.Seq[*ast.CallExpr] {
	return func(yield func(*ast.CallExpr) bool) {
		skip := make(map[ast.Node]bool)
		more := true
		ast.Inspect(at.body, func(n ast.Node) bool {
			if !more || n == nil || skip[n] || s.code[n] {
				return false
			}
			switch n := n.(type) {
			case *ast.GoStmt, *ast.DeferStmt:
				return false
			case *ast.BlockStmt:
				for i, stmt := range n.List {
					if receives(stmt) {
						for _, later := range n.List[i:] {
							skip[later] = true
						}
					}
				}
			case *ast.IfStmt:
				if s.failed(n.Cond) {
					skip[n.Body] = true
				}
			case *ast.CaseClause:
				if slices.ContainsFunc(n.List, s.failed) {
					return false
				}
			case *ast.CommClause:
				if receives(n.Comm) {
					return false
				}
			case *ast.CallExpr:
				if name := methodName(n); name == "Cleanup" || name == "AfterFunc" {
					return false
				}
				more = yield(n)
			}
			return more
		})
	}
}

// failed reports whether a condition says that something has failed: it compares an error with nil,
// or examines one.
func (s *sections) failed(cond ast.Expr) (found bool) {
	ast.Inspect(cond, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			t := s.info.TypeOf(n.X)
			found = found || n.Op == token.NEQ && t != nil && isError(t)
		case *ast.CallExpr:
			found = found || calls(s.info, n, "errors.Is", "errors.As")
		}
		return !found
	})
	return found
}

// receives reports whether a statement, or the case of a select, waits for the end of a context or of a lock.
func receives(stmt ast.Stmt) bool {
	x, ok := stmt.(*ast.ExprStmt)
	if !ok {
		return false
	}
	arrow, ok := x.X.(*ast.UnaryExpr)
	if !ok || arrow.Op != token.ARROW {
		return false
	}
	call, ok := arrow.X.(*ast.CallExpr)
	return ok && methodName(call) == "Done"
}

// receiver returns what is in front of the dot of a call such as x.Done(); nil for other calls.
func receiver(call *ast.CallExpr) ast.Expr {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		return ast.Unparen(sel.X)
	}
	return nil
}

// methodName returns the name behind the dot of a call such as x.Done(); "" for other calls.
func methodName(call *ast.CallExpr) string {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		return sel.Sel.Name
	}
	return ""
}
