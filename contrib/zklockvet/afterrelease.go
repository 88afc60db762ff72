package zklockvet

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// AfterRelease reports locks that are used after their release.
var AfterRelease = &analysis.Analyzer{
	Name: "afterrelease",
	Doc: `report uses of a lock after its Release

After the Release another holder may have the lock. A context of it has ended, and a token of it proves nothing any more:

	if err := lock.Release(ctx); err != nil {
		return err
	}
	return fence.InTx(ctx, db, fence.PostgreSQL, lock, pay) // before the release

Err, Name and the other methods that return facts may be called, and the lock may be logged.`,
	Requires: []*analysis.Analyzer{inspect.Analyzer, bindingsAnalyzer},
	Run:      runAfterRelease,
}

func runAfterRelease(pass *analysis.Pass) (any, error) {
	b := pass.ResultOf[bindingsAnalyzer].(*bindings)
	for cur := range pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root().Preorder((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		var body *ast.BlockStmt
		switch fn := cur.Node().(type) {
		case *ast.FuncDecl:
			body = fn.Body
		case *ast.FuncLit:
			body = fn.Body
		}
		if body == nil || inTest(pass.Fset.File(body.Pos()).Name()) || !b.releasesIn(body) {
			continue
		}
		for _, block := range cfg.New(body, b.mayReturn).Blocks {
			for i, n := range block.Nodes {
				if lock := b.released(n); lock != nil && block.Live {
					u := uses{bindings: b, lock: lock, seen: make(map[*cfg.Block]bool)}
					if use := u.after(block, i+1); use != nil {
						pass.ReportRangef(use, "%s is used after its release on line %d: another holder may have it", lock.Name(), pass.Fset.Position(n.Pos()).Line)
					}
				}
			}
		}
	}
	return nil, nil
}

// releasesIn reports whether a node has a release, so that most functions cost no graph.
func (b *bindings) releasesIn(root ast.Node) (found bool) {
	ast.Inspect(root, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && releases(b.info, call)
		return !found
	})
	return found
}

// released returns the lock that a statement releases; nil if it releases none, or later.
func (b *bindings) released(n ast.Node) (lock *types.Var) {
	switch n.(type) {
	case *ast.DeferStmt, *ast.GoStmt:
		return nil
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if _, later := n.(*ast.FuncLit); later {
			return false
		}
		if call, ok := n.(*ast.CallExpr); ok && releases(b.info, call) {
			lock = b.variable(receiver(call))
		}
		return lock == nil
	})
	return lock
}

// uses looks for a use of a lock that was released.
type uses struct {
	*bindings
	lock *types.Var
	seen map[*cfg.Block]bool
}

// after returns the first use on a path from a node of a block on; nil if there is none before the variable gets another lock.
func (u *uses) after(block *cfg.Block, from int) ast.Node {
	for _, n := range block.Nodes[from:] {
		if use := u.in(n); use != nil {
			return use
		}
		if u.replaces(n) {
			return nil
		}
	}
	for _, next := range block.Succs {
		if u.seen[next] {
			continue
		}
		u.seen[next] = true
		if use := u.after(next, 0); use != nil {
			return use
		}
	}
	return nil
}

// in returns a use in a node: a method that needs a lock that is held, or a call that gets the lock.
func (u *uses) in(n ast.Node) (use ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || use != nil {
			_, later := n.(*ast.FuncLit)
			return use == nil && !later
		}
		if fn := callee(u.info, call); fn != nil && fn.Pkg() != nil {
			switch fn.Pkg().Path() {
			case "fmt", "log", "log/slog":
				return false
			}
		}
		if u.variable(receiver(call)) == u.lock {
			switch methodName(call) {
			case "Context", "Token", "Txn", "Get", "Verify", "Downgrade", "SetLabel":
				use = call
			}
		}
		for _, arg := range call.Args {
			if u.variable(ast.Unparen(arg)) == u.lock {
				use = call
			}
		}
		return use == nil
	})
	return use
}

// replaces reports whether a node sets the variable, or declares it again in the next round of a loop.
func (u *uses) replaces(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, x := range n.Lhs {
			if u.variable(x) == u.lock {
				return true
			}
		}
	case *ast.ValueSpec:
		for _, x := range n.Names {
			if u.variable(x) == u.lock {
				return true
			}
		}
	case *ast.RangeStmt:
		return n.Tok == token.DEFINE && (u.variable(n.Key) == u.lock || u.variable(n.Value) == u.lock)
	case *ast.Ident: // the graph has the variables of a range by themselves
		return u.variable(n) == u.lock
	}
	return false
}
