package zklockvet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// Unreleased reports locks that are not released on a path.
var Unreleased = &analysis.Analyzer{
	Name: "unreleased",
	Doc: `report locks that are not released on a path

A lock that a function drops without a Release stays held until its session ends, and all others wait:

	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	if err := check(); err != nil {
		return err // the lock is still held
	}
	return lock.Release(ctx)

A lock that is stored, returned, or passed to a function of the program has another owner. Functions
that close the client, func main and tests may leave a lock to the end of its session. zklock.Do
releases on all paths, and after a panic.`,
	Requires: []*analysis.Analyzer{inspect.Analyzer, bindingsAnalyzer},
	Run:      runUnreleased,
}

func runUnreleased(pass *analysis.Pass) (any, error) {
	b := pass.ResultOf[bindingsAnalyzer].(*bindings)
	for cur := range pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root().Preorder((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		var body *ast.BlockStmt
		var signature *ast.FuncType
		switch fn := cur.Node().(type) {
		case *ast.FuncDecl:
			body, signature = fn.Body, fn.Type
		case *ast.FuncLit:
			body, signature = fn.Body, fn.Type
		}
		if body == nil || !b.acquiresIn(body) || inTest(pass.Fset.File(body.Pos()).Name()) || isMain(pass, cur.Node()) || closes(b.info, cur) {
			continue
		}
		for _, block := range cfg.New(body, b.mayReturn).Blocks {
			if !block.Live {
				continue
			}
			for i, n := range block.Nodes {
				if h := heldFrom(b, signature, cur, n); h != nil {
					h.check(pass, block, i+1)
				}
			}
		}
	}
	return nil, nil
}

// acquiresIn reports whether a node has an acquisition.
func (b *bindings) acquiresIn(root ast.Node) (found bool) {
	ast.Inspect(root, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && acquires(b.info, call)
		return !found
	})
	return found
}

// mayReturn reports whether a call may return: it does not panic or end the process, by its name.
func (b *bindings) mayReturn(call *ast.CallExpr) bool {
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok && b.info.Uses[id] == types.Universe.Lookup("panic") {
		return false
	}
	fn := callee(b.info, call)
	return fn == nil || !strings.HasPrefix(fn.Name(), "Fatal") && !strings.HasPrefix(fn.Name(), "Panic") &&
		!calls(b.info, call, "os.Exit", "runtime.Goexit", "syscall.Exit")
}

// isMain reports whether a function is the program's main, whose end is that of the process.
func isMain(pass *analysis.Pass, fn ast.Node) bool {
	decl, ok := fn.(*ast.FuncDecl)
	return ok && decl.Recv == nil && decl.Name.Name == "main" && pass.Pkg.Name() == "main"
}

// closes reports whether a function, or one around it, closes a client, and with it all its locks.
func closes(info *types.Info, fn inspector.Cursor) bool {
	for c := range fn.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		for call := range c.Preorder((*ast.CallExpr)(nil)) {
			if calls(info, call.Node().(*ast.CallExpr), "(*"+core+".Client).Close", "(*"+core+".Client).Shutdown") {
				return true
			}
		}
	}
	return false
}

// held is a lock that a statement acquires, in the function that has to release it.
type held struct {
	*bindings
	at   ast.Node // the statement
	call *ast.CallExpr
	lock *types.Var // nil if it is dropped at once
	err  *types.Var // nil if it is dropped

	fn             inspector.Cursor
	result         bool // a plain return returns it
	returnsContext bool // the function returns a context

	// gives are the uses after which the lock has another owner, or none.
	gives []ast.Node
}

// heldFrom returns the lock that a statement acquires, nil if it acquires none, or one that is not
// kept in a variable of the function alone.
func heldFrom(b *bindings, signature *ast.FuncType, fn inspector.Cursor, n ast.Node) *held {
	h := &held{bindings: b, at: n, fn: fn}
	var to []ast.Expr
	switch n := n.(type) {
	case *ast.ExprStmt:
		h.call, _ = ast.Unparen(n.X).(*ast.CallExpr)
	case *ast.AssignStmt:
		if len(n.Lhs) == 2 && len(n.Rhs) == 1 {
			h.call, _ = ast.Unparen(n.Rhs[0]).(*ast.CallExpr)
			to = n.Lhs
		}
	case *ast.ValueSpec:
		if len(n.Names) == 2 && len(n.Values) == 1 {
			h.call, _ = ast.Unparen(n.Values[0]).(*ast.CallExpr)
			to = []ast.Expr{n.Names[0], n.Names[1]}
		}
	}
	if h.call == nil || !acquires(b.info, h.call) {
		return nil
	}
	if to == nil {
		return h
	}
	id, ok := to[0].(*ast.Ident)
	if !ok {
		return nil // a field or an element
	}
	h.err = b.variable(to[1])
	if id.Name == "_" {
		return h
	}
	h.lock = b.variable(id)
	if h.lock == nil || !within(fn.Node(), h.lock.Pos()) {
		return nil
	}
	if signature.Results != nil {
		h.result = within(signature.Results, h.lock.Pos())
		for _, field := range signature.Results.List {
			if t := b.info.TypeOf(field.Type); t != nil && isContext(t) {
				h.returnsContext = true
			}
		}
	}
	if !h.findGives() {
		return nil
	}
	return h
}

// findGives finds the uses that give the lock away. It reports false if a literal in front of the
// acquisition has one: that may run at any time.
func (h *held) findGives() bool {
	for c := range h.fn.Preorder((*ast.Ident)(nil)) {
		if h.info.Uses[c.Node().(*ast.Ident)] != h.lock || h.looks(c) {
			continue
		}
		if c.Node().Pos() < h.at.Pos() {
			for lit := range c.Enclosing((*ast.FuncLit)(nil)) {
				if lit.Node() != h.fn.Node() && within(h.fn.Node(), lit.Node().Pos()) {
					return false
				}
			}
		}
		h.gives = append(h.gives, c.Node())
	}
	return true
}

// looks reports whether a use only looks at the lock: it calls a method that does not end it, compares
// it with nil, passes it to a function of zklock or of a log, or sets the variable.
func (h *held) looks(c inspector.Cursor) bool {
	switch parent := c.Parent().Node().(type) {
	case *ast.SelectorExpr:
		call, ok := c.Parent().Parent().Node().(*ast.CallExpr)
		if !ok || call.Fun != parent || releases(h.info, call) {
			return false
		}
		switch parent.Sel.Name {
		case "Done": // after that, the lock is not held
			arrow, ok := c.Parent().Parent().Parent().Node().(*ast.UnaryExpr)
			return !ok || arrow.Op != token.ARROW
		case "Context": // a context that is returned carries the lock
			return !h.returnsContext
		}
		return true
	case *ast.BinaryExpr:
		return true
	case *ast.AssignStmt:
		for _, x := range parent.Lhs {
			if x == c.Node() {
				return true
			}
		}
		return len(parent.Lhs) == 1 && isBlank(parent.Lhs[0])
	case *ast.CallExpr:
		return keepsNothing(callee(h.info, parent)) && !releases(h.info, parent)
	}
	return false
}

// keepsNothing reports whether a function neither releases a lock that it gets nor stores it.
func keepsNothing(fn *types.Func) bool {
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	switch fn.Pkg().Path() {
	case "fmt", "log", "log/slog", core, core + "/fence":
		return true
	}
	return false
}

func isBlank(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == "_"
}

// check reports the lock if there is a path without a release.
func (h *held) check(pass *analysis.Pass, block *cfg.Block, next int) {
	name := callee(h.info, h.call).Name()
	p := paths{held: h, seen: make(map[step]bool)}
	end := p.walk(step{block, next, h.err != nil})
	if end == nil {
		return
	}
	if h.lock == nil {
		pass.ReportRangef(h.call, "the lock that %s returns is dropped and never released", name)
		return
	}
	release := "release it with defer, or use zklock.Do"
	if name == "Campaign" {
		release = "resign with defer, or use Election.Run"
	}
	pos := pass.Fset.Position(end.Pos())
	where := fmt.Sprintf("on the path to line %d", pos.Line)
	if end == h.at {
		where = "before the loop acquires the next one"
	}
	pass.Report(analysis.Diagnostic{
		Pos: h.call.Pos(), End: h.call.End(),
		Message:        fmt.Sprintf("%s is not released %s: %s", h.lock.Name(), where, release),
		SuggestedFixes: h.deferRelease(pass.Fset),
	})
}
