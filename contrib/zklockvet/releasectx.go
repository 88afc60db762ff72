package zklockvet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// ReleaseContext reports releases with contexts that may have ended.
var ReleaseContext = &analysis.Analyzer{
	Name: "releasectx",
	Doc: `report releases with a context that may have ended

A Release whose context has ended does not wait for the ensemble's confirmation, and fails with
ErrReleasePending. A context of the lock itself always ends with the call of Release. A context that
bounded the wait may have ended when a deferred call uses it, or by its timeout:

	lock, err := mutex.Acquire(ctx)
	...
	defer lock.Release(ctx) // use context.WithoutCancel(ctx)

Release waits no longer than a session timeout.`,
	Requires: []*analysis.Analyzer{inspect.Analyzer, bindingsAnalyzer, sectionsAnalyzer},
	Run:      runReleaseContext,
}

func runReleaseContext(pass *analysis.Pass) (any, error) {
	r := releaseChecker{sections: pass.ResultOf[sectionsAnalyzer].(*sections), inner: make(map[*types.Var]bool), waited: make(map[ast.Node]map[types.Object]bool)}
	for _, at := range r.all {
		if at.inner != nil {
			r.inner[at.inner] = true
		}
	}
	for cur := range pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root().Preorder((*ast.CallExpr)(nil)) {
		call := cur.Node().(*ast.CallExpr)
		if !releases(r.info, call) || len(call.Args) != 1 {
			continue
		}
		why := r.reason(cur, call.Args[0])
		if why == "" {
			continue
		}
		text := types.ExprString(call.Args[0])
		pass.Report(analysis.Diagnostic{
			Pos: call.Args[0].Pos(), End: call.Args[0].End(),
			Message:        text + " " + why + ": use context.WithoutCancel(" + text + ")",
			SuggestedFixes: r.withoutCancel(call.Args[0]),
		})
	}
	return nil, nil
}

// releaseChecker looks at the contexts of releases.
type releaseChecker struct {
	*sections
	inner map[*types.Var]bool // the contexts of functions that run under a lock

	// waited has, for a function, the variables that the contexts of its acquisitions are
	// derived from.
	waited map[ast.Node]map[types.Object]bool
}

// reason returns why the context of a release may have ended; "" if there is no sign of that.
func (r *releaseChecker) reason(cur inspector.Cursor, x ast.Expr) string {
	deferred, fn := false, ast.Node(nil)
	for c := range cur.Enclosing((*ast.DeferStmt)(nil), (*ast.FuncDecl)(nil)) {
		switch n := c.Node().(type) {
		case *ast.DeferStmt:
			deferred = true
		case *ast.FuncDecl:
			fn = n
		}
	}
	if fn == nil {
		return ""
	}
	timed, waited := false, false
	for x := range r.lineage(x) {
		obj := r.root(x)
		waited = waited || obj != nil && r.waitedWith(fn)[obj]
		if v := r.variable(x); v != nil && r.inner[v] && len(r.values[v]) == 1 {
			return "ends when the lock is released or lost"
		}
		if call, ok := x.(*ast.CallExpr); ok {
			switch {
			case calls(r.info, call, "context.WithoutCancel"):
				return ""
			case calls(r.info, call, "(*"+core+".Lock).Context"):
				return "ends when the lock is released"
			case calls(r.info, call, timing...):
				timed = timed || waited // a timeout of the release alone may be derived from what waited
			}
		}
	}
	if !waited || !r.mayEnd(x) || !deferred && (!timed || inTest(r.files.File(x.Pos()).Name())) {
		return ""
	}
	return "bounded the wait for the lock, and may have ended"
}

// root returns the variable that a context is: ctx itself, or r of r.Context(). The context of a
// test is none, since it ends behind the deferred calls.
func (r *releaseChecker) root(x ast.Expr) types.Object {
	if v := r.variable(x); v != nil {
		return v
	}
	if call, ok := x.(*ast.CallExpr); ok && methodName(call) == "Context" && len(call.Args) == 0 {
		on := receiver(call)
		if sel, ok := on.(*ast.SelectorExpr); ok { // c.Request.Context()
			on = sel.X
		}
		if v := r.variable(on); v != nil && !isTesting(v.Type()) {
			return v
		}
	}
	return nil
}

// waitedWith returns the variables that the contexts of a function's acquisitions are derived from.
func (r *releaseChecker) waitedWith(fn ast.Node) map[types.Object]bool {
	if found, ok := r.waited[fn]; ok {
		return found
	}
	found := make(map[types.Object]bool)
	r.waited[fn] = found
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !r.returnsHeld(call) {
			return true
		}
		for _, arg := range call.Args {
			if t := r.info.TypeOf(arg); t == nil || !isContext(t) {
				continue
			}
			for x := range r.lineage(arg) {
				if obj := r.root(x); obj != nil {
					found[obj] = true
				}
			}
		}
		return true
	})
	return found
}

// returnsHeld reports whether a call returns a lock: Acquire, or a function of the program.
func (r *releaseChecker) returnsHeld(call *ast.CallExpr) bool {
	switch t := r.info.TypeOf(call).(type) {
	case *types.Tuple:
		return t.Len() > 0 && isHeld(t.At(0).Type())
	case nil:
		return false
	default:
		return isHeld(t)
	}
}

// withoutCancel returns the fix: context.WithoutCancel around a context. There is none in a file that
// does not import package context under its name.
func (r *releaseChecker) withoutCancel(x ast.Expr) []analysis.SuggestedFix {
	if !r.hasContext(x) {
		return nil
	}
	return []analysis.SuggestedFix{{Message: "Use context.WithoutCancel", TextEdits: []analysis.TextEdit{
		{Pos: x.Pos(), End: x.Pos(), NewText: []byte("context.WithoutCancel(")},
		{Pos: x.End(), End: x.End(), NewText: []byte(")")},
	}}}
}

// hasContext reports whether the name context is that of the package at a node.
func (b *bindings) hasContext(n ast.Node) bool {
	p, ok := b.lookup("context", n.Pos()).(*types.PkgName)
	return ok && p.Imported().Path() == "context"
}
