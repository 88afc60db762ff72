package zklockvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
	"golang.org/x/tools/go/types/typeutil"
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
				if lock := b.released(n); lock.v != nil && block.Live {
					u := uses{bindings: b, lock: lock, seen: make(map[*cfg.Block]bool)}
					if use := u.after(block, i+1); use != nil {
						pass.ReportRangef(use, "%s is used after its release on line %d: another holder may have it", lock, pass.Fset.Position(n.Pos()).Line)
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

// spot is what has a lock: a variable, or a field of one. It is zero for others.
type spot struct{ v, field *types.Var }

// String returns the spot as code.
func (s spot) String() string {
	if s.field == nil {
		return s.v.Name()
	}
	return s.v.Name() + "." + s.field.Name()
}

// spot returns what an expression names.
func (b *bindings) spot(x ast.Expr) spot {
	if x == nil {
		return spot{}
	}
	x = ast.Unparen(x)
	if sel, ok := x.(*ast.SelectorExpr); ok && b.info.Selections[sel] != nil {
		if field, ok := b.info.Selections[sel].Obj().(*types.Var); ok {
			if v := b.variable(ast.Unparen(sel.X)); v != nil {
				return spot{v, field}
			}
		}
		return spot{}
	}
	return spot{v: b.variable(x)}
}

// released returns the lock that a statement releases; zero if it releases none, or later.
func (b *bindings) released(n ast.Node) (lock spot) {
	switch n.(type) {
	case *ast.DeferStmt, *ast.GoStmt:
		return spot{}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if _, later := n.(*ast.FuncLit); later {
			return false
		}
		if call, ok := n.(*ast.CallExpr); ok && releases(b.info, call) {
			lock = b.spot(receiver(call))
		}
		return lock.v == nil
	})
	return lock
}

// uses looks for a use of a lock that was released.
type uses struct {
	*bindings
	lock spot
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
		if u.seen[next] || next.Kind == cfg.KindRangeLoop && u.replaces(next.Stmt) {
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
func (u *uses) in(n ast.Node) ast.Node { return u.use(n, u.lock, make(map[spot]bool)) }

// use is in for any variable that has the lock. Of a function of this package that gets the lock, its code says whether it needs
// one that is held.
func (b *bindings) use(n ast.Node, lock spot, seen map[spot]bool) (use ast.Node) {
	seen[lock] = true
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || use != nil {
			_, later := n.(*ast.FuncLit)
			return use == nil && !later
		}
		fn := callee(b.info, call)
		if fn != nil && fn.Pkg() != nil {
			switch fn.Pkg().Path() {
			case "fmt", "log", "log/slog":
				return false
			}
		}
		if b.spot(receiver(call)) == lock {
			switch methodName(call) {
			case "Context", "Token", "Txn", "Get", "Verify", "Downgrade", "SetLabel":
				use = call
			}
		}
		if _, builtin := typeutil.Callee(b.info, call).(*types.Builtin); builtin {
			return use == nil // append stores it
		}
		for i, arg := range call.Args {
			if b.spot(arg) != lock {
				continue
			}
			if decl := b.declared(fn); decl != nil && i < fn.Signature().Params().Len() && !fn.Signature().Variadic() {
				got := spot{v: fn.Origin().Signature().Params().At(i)}
				if seen[got] || b.use(decl.Body, got, seen) == nil {
					continue
				}
			}
			use = call
		}
		return use == nil
	})
	return use
}

// declared returns the declaration of a function of this package; nil for others.
func (b *bindings) declared(fn *types.Func) *ast.FuncDecl {
	if fn == nil {
		return nil
	}
	return b.funcs[fn.Origin()]
}

// replaces reports whether a node sets the variable, passes its address to something that may, or declares it again in the next
// round of a loop. A method of what has the field, and a function that gets it, may set the field.
func (u *uses) replaces(n ast.Node) bool {
	if n, ok := n.(*ast.RangeStmt); ok {
		return u.sets(n.Key) || u.sets(n.Value) // the graph has it in each round; what it contains has blocks of its own
	}
	passed := false
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.UnaryExpr:
			passed = passed || n.Op == token.AND && u.sets(n.X)
		case *ast.CallExpr:
			for _, x := range append([]ast.Expr{receiver(n)}, n.Args...) {
				passed = passed || u.lock.field != nil && u.spot(x) == spot{v: u.lock.v}
			}
		}
		return !passed
	})
	if passed {
		return true
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		return slices.ContainsFunc(n.Lhs, u.sets)
	case *ast.ValueSpec:
		return slices.ContainsFunc(expressions(n.Names), u.sets)
	}
	return false
}

// sets reports whether an expression that is set is that of the lock, or the variable whose field has it.
func (u *uses) sets(x ast.Expr) bool {
	at := u.spot(x)
	return at.v != nil && (at == u.lock || at == spot{v: u.lock.v})
}
