package zklockvet

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// AcquireLoop reports loops that acquire several locks.
var AcquireLoop = &analysis.Analyzer{
	Name: "acquireloop",
	Doc: `report loops that acquire several locks one after the other

Two programs that acquire the same names in different orders can wait for each other. The context of
such a loop does not carry its locks, so no client finds that deadlock: it lasts until a context ends.
zklock.All acquires several names in one step, and holds all of them or none:

	for _, id := range ids {
		lock, err := client.Mutex("accounts/" + id).Acquire(ctx) // use zklock.All
		...
		defer lock.Release(context.WithoutCancel(ctx))
	}`,
	Requires: []*analysis.Analyzer{inspect.Analyzer, bindingsAnalyzer},
	Run:      runAcquireLoop,
}

func runAcquireLoop(pass *analysis.Pass) (any, error) {
	b := pass.ResultOf[bindingsAnalyzer].(*bindings)
	for cur := range pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root().Preorder((*ast.AssignStmt)(nil)) {
		assign := cur.Node().(*ast.AssignStmt)
		call := acquisition(b.info, assign)
		if call == nil || callee(b.info, call).Name() != "Acquire" || inTest(pass.Fset.File(call.Pos()).Name()) {
			continue
		}
		loop := loopAround(b.info, cur)
		if loop == nil || !b.declaredIn(loop, call.Fun) {
			continue
		}
		lock := b.variable(assign.Lhs[0])
		if _, stored := assign.Lhs[0].(*ast.IndexExpr); stored || lock != nil && b.keeps(cur, loop, lock) {
			pass.ReportRangef(call, "a loop acquires several locks one after the other, and holds all of them: use zklock.All, which acquires them in one step and without a deadlock")
		}
	}
	return nil, nil
}

// acquisition returns the call of an assignment of the form lock, err := x.Acquire(ctx); nil for
// others.
func acquisition(info *types.Info, assign *ast.AssignStmt) *ast.CallExpr {
	if len(assign.Lhs) != 2 || len(assign.Rhs) != 1 {
		return nil
	}
	call, ok := ast.Unparen(assign.Rhs[0]).(*ast.CallExpr)
	if !ok || !acquires(info, call) {
		return nil
	}
	return call
}

// loopAround returns the loop around a statement, in the same function, if it goes through what the
// program has at its start: a slice, a map, a number. Other loops are without an end, or end by what
// happens in them.
func loopAround(info *types.Info, cur inspector.Cursor) ast.Node {
	for c := range cur.Enclosing((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil), (*ast.FuncLit)(nil), (*ast.FuncDecl)(nil)) {
		switch n := c.Node().(type) {
		case *ast.ForStmt:
			if n.Init != nil && n.Cond != nil && n.Post != nil {
				return n
			}
			return nil
		case *ast.RangeStmt:
			switch info.TypeOf(n.X).Underlying().(type) {
			case *types.Chan, *types.Signature:
				return nil
			}
			return n
		default:
			return nil
		}
	}
	return nil
}

// declaredIn reports whether an expression has a variable that a loop declares: it differs from one
// round to the next.
func (b *bindings) declaredIn(loop ast.Node, x ast.Expr) (found bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			v := b.variable(id)
			found = found || v != nil && !v.IsField() && within(loop, v.Pos())
		}
		return !found
	})
	return found
}

// keeps reports whether a loop keeps a lock beyond its round: it appends it to a slice, stores it
// in a map, or defers its release. What ends the loop afterwards keeps one lock only.
func (b *bindings) keeps(cur inspector.Cursor, loop ast.Node, lock *types.Var) bool {
	body, ok := cur.Inspector().Root().FindNode(loop)
	if !ok {
		return false
	}
	for c := range body.Preorder((*ast.CallExpr)(nil), (*ast.AssignStmt)(nil), (*ast.DeferStmt)(nil)) {
		kept := false
		switch n := c.Node().(type) {
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && b.info.Uses[id] == types.Universe.Lookup("append") {
				for _, arg := range n.Args[1:] {
					kept = kept || b.variable(arg) == lock
				}
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				_, indexed := to.(*ast.IndexExpr)
				kept = kept || indexed && len(n.Rhs) == len(n.Lhs) && b.variable(n.Rhs[i]) == lock
			}
		case *ast.DeferStmt:
			ast.Inspect(n, func(x ast.Node) bool {
				call, ok := x.(*ast.CallExpr)
				if ok && releases(b.info, call) {
					kept = kept || b.variable(receiver(call)) == lock
				}
				return true
			})
		}
		if kept && sameLoop(c, loop) && !leaves(c) {
			return true
		}
	}
	return false
}

// sameLoop reports whether a statement is in the function of a loop, and not in a literal.
func sameLoop(c inspector.Cursor, loop ast.Node) bool {
	for at := range c.Enclosing((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil), (*ast.FuncLit)(nil)) {
		switch at.Node().(type) {
		case *ast.FuncLit:
			return false
		default:
			if at.Node() == loop {
				return true
			}
		}
	}
	return false
}

// leaves reports whether the block around a statement ends with a return or with a break.
func leaves(c inspector.Cursor) bool {
	for at := range c.Enclosing((*ast.BlockStmt)(nil)) {
		list := at.Node().(*ast.BlockStmt).List
		if len(list) == 0 {
			return false
		}
		switch last := list[len(list)-1].(type) {
		case *ast.ReturnStmt:
			return true
		case *ast.BranchStmt:
			return last.Tok != token.CONTINUE
		}
		return false
	}
	return false
}
