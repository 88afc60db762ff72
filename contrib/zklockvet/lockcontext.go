package zklockvet

import (
	"go/ast"
	"go/types"

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
with the context of the acquisition goes on when the lock is lost.`,
	Requires: []*analysis.Analyzer{inspect.Analyzer, sectionsAnalyzer},
	Run:      runLockContext,
}

func runLockContext(pass *analysis.Pass) (any, error) {
	s := pass.ResultOf[sectionsAnalyzer].(*sections)
	for cur := range pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root().Preorder((*ast.AssignStmt)(nil)) {
		assign := cur.Node().(*ast.AssignStmt)
		block, ok := cur.Parent().Node().(*ast.BlockStmt)
		if !ok || len(assign.Lhs) != 2 || len(assign.Rhs) != 1 || inTest(pass.Fset.File(assign.Pos()).Name()) {
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
				s.reportAfter(pass, block, assign, call.Args[0], s.variable(receiver(call)), "use "+v.Name())
			}
		case acquires(s.info, call) && callee(s.info, call).Name() != "Campaign":
			if lock := s.variable(assign.Lhs[0]); lock != nil && s.onlyReleased(cur, lock) {
				s.reportAfter(pass, block, assign, call.Args[0], lock, "use that of "+lock.Name()+".Context, or zklock.Do")
			}
		}
	}
	return nil, nil
}

// reportAfter reports calls with the context passed, or one that never ends, in what follows a statement of a block until
// a release of the lock.
func (s *sections) reportAfter(pass *analysis.Pass, block *ast.BlockStmt, after ast.Stmt, passed ast.Expr, lock *types.Var, use string) {
	rest := &ast.BlockStmt{}
	for i, stmt := range block.List {
		if stmt == after {
			rest.List = block.List[i+1:]
		}
	}
	for call := range s.work(section{body: rest}) {
		if lock != nil && releases(s.info, call) && s.variable(receiver(call)) == lock {
			return
		}
		if waits(s.info, call) || harmless(s.info, call) || s.gets(call, lock) {
			continue
		}
		for _, arg := range call.Args {
			if t := s.info.TypeOf(arg); t == nil || !isContext(t) || !s.endless(arg) && !s.same(arg, passed) {
				continue
			}
			pass.Report(analysis.Diagnostic{
				Pos: arg.Pos(), End: arg.End(),
				Message: types.ExprString(ast.Unparen(arg)) + " does not end when the lock is lost: " + use,
			})
		}
	}
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

// same reports whether two expressions are the same context: a variable, or the result of the same method of one.
func (s *sections) same(x, y ast.Expr) bool {
	x, y = ast.Unparen(x), ast.Unparen(y)
	if v := s.variable(x); v != nil {
		return v == s.variable(y)
	}
	a, ok := x.(*ast.CallExpr)
	b, both := y.(*ast.CallExpr)
	if !ok || !both || methodName(a) != "Context" || methodName(b) != "Context" || isTesting(s.info.TypeOf(receiver(a))) {
		return false
	}
	v := s.variable(receiver(a))
	return v != nil && v == s.variable(receiver(b))
}

// onlyReleased reports whether the function around an acquisition releases the lock in a deferred call, and uses nothing
// else of it.
func (s *sections) onlyReleased(at inspector.Cursor, lock *types.Var) bool {
	for fn := range at.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		deferred := false
		for c := range fn.Preorder((*ast.Ident)(nil)) {
			if s.info.Uses[c.Node().(*ast.Ident)] != lock {
				continue
			}
			call, ok := c.Parent().Parent().Node().(*ast.CallExpr)
			if !ok || !releases(s.info, call) {
				return false
			}
			for range c.Enclosing((*ast.DeferStmt)(nil)) {
				deferred = true
			}
		}
		return deferred
	}
	return false
}
