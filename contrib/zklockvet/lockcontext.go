package zklockvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// LockContext reports work that should have the context of a lock that its function acquires.
var LockContext = &analysis.Analyzer{
	Name: "lockcontext",
	Doc: `report work between Acquire and Release whose context does not end with the lock

Lock.Context returns a context that ends when the lock is lost. It serves nothing if the function drops it,
or passes its own context to the work:

	work, cancel := lock.Context(ctx)
	defer cancel()
	return charge(ctx) // use work

A call that gets the lock, or a token of it, may have any context.

Nor does a lock serve of which the function uses nothing but the Release: no context, no token, no Valid. What follows
with the context of the acquisition, or with the one that its timeout was derived from, goes on when the lock is lost.`,
	Requires: []*analysis.Analyzer{inspect.Analyzer, sectionsAnalyzer},
	Run:      runLockContext,
}

func runLockContext(pass *analysis.Pass) (any, error) {
	s := pass.ResultOf[sectionsAnalyzer].(*sections)
	reported := make(map[ast.Expr]bool) // one context may be that of several locks
	for cur := range pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root().Preorder((*ast.AssignStmt)(nil)) {
		assign := cur.Node().(*ast.AssignStmt)
		if len(assign.Lhs) != 2 || len(assign.Rhs) != 1 || inTest(pass.Fset.File(assign.Pos()).Name()) {
			continue
		}
		call, ok := ast.Unparen(assign.Rhs[0]).(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			continue
		}
		switch {
		case calls(s.info, call, "(*"+core+".Lock).Context"):
			if isBlank(assign.Lhs[0]) {
				pass.ReportRangef(call, "the context of %s is dropped: pass it to the work under the lock", types.ExprString(receiver(call)))
			} else if v := s.variable(assign.Lhs[0]); v != nil && v != s.variable(ast.Unparen(call.Args[0])) {
				s.reportIn(pass, s.behind(cur, false), call.Args[0], s.variable(receiver(call)), "use "+v.Name(), reported)
			}
		case acquires(s.info, call) && callee(s.info, call).Name() != "Campaign":
			lock := s.variable(assign.Lhs[0])
			if lock == nil {
				continue
			}
			if only, deferred := s.onlyReleased(cur, lock); only {
				s.reportIn(pass, s.granted(s.behind(cur, deferred), s.variable(assign.Lhs[1])), call.Args[0], lock, "use that of "+lock.Name()+".Context, or zklock.Do", reported)
			}
		}
	}
	return nil, nil
}

// behind returns what follows a statement: the rest of its block, and, of the condition of an if, its branches. Whole says that
// what follows the block of an if counts, too, unless the block returns.
func (s *sections) behind(cur inspector.Cursor, whole bool) *ast.BlockStmt {
	rest := &ast.BlockStmt{}
	for {
		at := cur.Node()
		cur = cur.Parent()
		switch n := cur.Node().(type) {
		case *ast.IfStmt:
			if n.Init != at {
				if !whole {
					return rest
				}
				continue
			}
			rest.List = append(rest.List, n.Body)
			if s.failed(n.Cond) {
				rest.List = nil
			}
			if n.Else != nil {
				rest.List = append(rest.List, n.Else)
			}
			if assign, ok := at.(*ast.AssignStmt); ok && assign.Tok == token.DEFINE {
				return rest
			}
		case *ast.BlockStmt:
			rest.List = append(rest.List, following(n.List, at)...)
			if !whole || endsBlock(n.List) {
				return rest
			}
		case *ast.CaseClause:
			rest.List = append(rest.List, following(n.Body, at)...)
			return rest
		case *ast.CommClause:
			rest.List = append(rest.List, following(n.Body, at)...)
			return rest
		default:
			return rest
		}
	}
}

// endsBlock reports whether a list of statements ends with a return, or leaves a loop.
func endsBlock(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	switch list[len(list)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// granted returns the part of what follows an acquisition in which it has succeeded: if there is a branch for that alone, what
// comes behind it may be done without the lock.
func (s *sections) granted(rest *ast.BlockStmt, err *types.Var) *ast.BlockStmt {
	for i, stmt := range rest.List {
		branch, ok := stmt.(*ast.IfStmt)
		if !ok || err == nil {
			continue
		}
		cond, ok := branch.Cond.(*ast.BinaryExpr)
		if ok && cond.Op == token.EQL && s.variable(cond.X) == err && s.info.Types[cond.Y].IsNil() {
			return &ast.BlockStmt{List: append(rest.List[:i:i], branch.Body)}
		}
	}
	return rest
}

// following returns what follows a statement in a list.
func following(list []ast.Stmt, at ast.Node) []ast.Stmt {
	for i, stmt := range list {
		if stmt == at {
			return list[i+1:]
		}
	}
	return nil
}

// reportIn reports calls in a block with the context passed, one that it is derived from, or one that never ends, until a
// release of the lock.
func (s *sections) reportIn(pass *analysis.Pass, body *ast.BlockStmt, passed ast.Expr, lock *types.Var, use string, reported map[ast.Expr]bool) {
	for call := range s.work(section{body: body}) {
		if lock != nil && (releases(s.info, call) && s.variable(receiver(call)) == lock || s.runsRelease(call, lock)) {
			return
		}
		if waits(s.info, call) || harmless(s.info, call) || s.gets(call, lock) || s.forRelease(body, call) {
			continue
		}
		for _, arg := range call.Args {
			if t := s.info.TypeOf(arg); t == nil || !isContext(t) || reported[arg] || !s.endless(arg) && !s.outlives(arg, passed) {
				continue
			}
			reported[arg] = true
			pass.Report(analysis.Diagnostic{
				Pos: arg.Pos(), End: arg.End(),
				Message: types.ExprString(ast.Unparen(arg)) + " does not end when the lock is lost: " + use,
			})
		}
	}
}

// runsRelease reports whether a call is of a variable with a function that releases the lock, as of sync.OnceValue.
func (s *sections) runsRelease(call *ast.CallExpr, lock *types.Var) bool {
	v := s.variable(ast.Unparen(call.Fun))
	if v == nil {
		return false
	}
	found := false
	for _, value := range s.values[v] {
		if value == nil {
			continue
		}
		ast.Inspect(value, func(n ast.Node) bool {
			made, ok := n.(*ast.CallExpr)
			found = found || ok && releases(s.info, made) && s.variable(receiver(made)) == lock
			return !found
		})
	}
	return found
}

// forRelease reports whether a call makes the context of a release.
func (s *sections) forRelease(body *ast.BlockStmt, made *ast.CallExpr) (found bool) {
	if !calls(s.info, made, timing...) {
		return false
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && releases(s.info, call) && len(call.Args) == 1 {
			found = found || s.value(call.Args[0]) == made
		}
		return !found
	})
	return found
}

// outlives reports whether a context is the one that was passed, or one that this is derived from: a timeout of the wait alone.
func (s *sections) outlives(x, passed ast.Expr) bool {
	for from := range s.lineage(passed) {
		if s.same(x, from) {
			return true
		}
		if call, ok := from.(*ast.CallExpr); ok && calls(s.info, call, "(*"+core+".Lock).Context") {
			return false // that of another lock
		}
	}
	return false
}

// gets reports whether a call gets the lock, or something that was made of it, such as a token: what it calls can check
// whether the lock is held.
func (s *sections) gets(call *ast.CallExpr, lock *types.Var) (found bool) {
	made := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			found = found || ok && lock != nil && s.info.Uses[id] == lock
			return !found
		})
	}
	for _, x := range append([]ast.Expr{receiver(call)}, call.Args...) {
		if x == nil || found {
			continue
		}
		if t := s.info.TypeOf(x); t != nil && isContext(t) {
			continue
		}
		made(x)
		if v := s.variable(ast.Unparen(x)); v != nil {
			for _, value := range s.values[v] {
				if value != nil {
					made(value)
				}
			}
		}
	}
	return found
}

// same reports whether a context is the one that was passed before: a variable, or the result of the same method of one. It is
// another one if the variable has got a context of the lock in between, or something that may have one.
func (s *sections) same(x, passed ast.Expr) bool {
	x, passed = ast.Unparen(x), ast.Unparen(passed)
	if v := s.variable(x); v != nil {
		return v == s.variable(passed) && !slices.ContainsFunc(s.setBetween(v, passed, x), func(value ast.Expr) bool {
			for from := range s.lineage(value) {
				if call, ok := from.(*ast.CallExpr); ok && calls(s.info, call, "(*"+core+".Lock).Context") {
					return true
				}
			}
			return false
		})
	}
	a, ok := x.(*ast.CallExpr)
	b, both := passed.(*ast.CallExpr)
	if !ok || !both || methodName(a) != "Context" || methodName(b) != "Context" || isTesting(s.info.TypeOf(receiver(a))) {
		return false
	}
	v := s.variable(receiver(a))
	return v != nil && v == s.variable(receiver(b)) && len(s.setBetween(v, passed, x)) == 0
}

// setBetween returns what a variable is set to between two expressions.
func (s *sections) setBetween(v *types.Var, from, to ast.Expr) (values []ast.Expr) {
	for _, value := range s.values[v] {
		if value != nil && from.End() < value.Pos() && value.End() < to.Pos() {
			values = append(values, value)
		}
	}
	return values
}

// onlyReleased reports whether the function around an acquisition releases the lock, and uses nothing else of it, and
// whether a deferred call does so.
func (s *sections) onlyReleased(at inspector.Cursor, lock *types.Var) (only, deferred bool) {
	for fn := range at.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		for c := range fn.Preorder((*ast.Ident)(nil)) {
			if s.info.Uses[c.Node().(*ast.Ident)] != lock {
				continue
			}
			if assign, ok := c.Parent().Node().(*ast.AssignStmt); ok && assign == at.Node() {
				continue // it was declared before
			}
			call, ok := c.Parent().Parent().Node().(*ast.CallExpr)
			if !ok || !releases(s.info, call) {
				return false, false
			}
			only = true
			for in := range c.Enclosing((*ast.DeferStmt)(nil), (*ast.FuncLit)(nil), (*ast.FuncDecl)(nil)) {
				if in.Node() == fn.Node() {
					break
				}
				if _, ok := in.Node().(*ast.DeferStmt); ok {
					deferred = true
				} else if _, called := in.Parent().Parent().Node().(*ast.DeferStmt); !called {
					return false, false // a goroutine, or a function that may run at any time
				}
			}
		}
		return only, deferred
	}
	return false, false
}
