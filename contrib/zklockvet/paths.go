package zklockvet

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/cfg"
)

// paths looks for a path of a function on which a lock is not released.
type paths struct {
	*held
	seen map[step]bool
}

// step is a place on a path. fresh says that the variable of the error still has what the
// acquisition returned.
type step struct {
	block *cfg.Block
	node  int
	fresh bool
}

// walk follows all paths from a step on, and returns the node at which the lock is dropped: a
// return, or the acquisition of the next one. It returns nil if there is no such path. A path that
// ends with a panic or the process is none.
func (p *paths) walk(from step) ast.Node {
	if p.seen[from] {
		return nil
	}
	p.seen[from] = true
	fresh := from.fresh
	for _, n := range from.block.Nodes[from.node:] {
		switch {
		case p.given(n):
			return nil
		case n == p.at || p.lock != nil && p.sets(n, p.lock):
			return n
		}
		if ret, ok := n.(*ast.ReturnStmt); ok {
			if p.result && ret.Results == nil {
				return nil
			}
			return ret
		}
		if fresh && p.judges(n) {
			return nil
		}
		if fresh && p.sets(n, p.err) {
			fresh = false
		}
	}
	onTrue, onFalse := true, true
	if len(from.block.Succs) == 2 && len(from.block.Nodes) > 0 {
		if cond, ok := from.block.Nodes[len(from.block.Nodes)-1].(ast.Expr); ok {
			onTrue, onFalse = p.after(cond, fresh)
		}
	}
	for i, next := range from.block.Succs {
		if i == 0 && !onTrue || i == 1 && !onFalse {
			continue
		}
		if end := p.walk(step{next, 0, fresh}); end != nil {
			return end
		}
	}
	return nil
}

// given reports whether a node has a use that gives the lock away.
func (p *paths) given(n ast.Node) bool {
	for _, use := range p.gives {
		if within(n, use.Pos()) {
			return true
		}
	}
	return false
}

// sets reports whether a node is an assignment to a variable.
func (p *paths) sets(n ast.Node, v *types.Var) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, x := range n.Lhs {
			if p.variable(x) == v {
				return true
			}
		}
	case *ast.ValueSpec:
		for _, x := range n.Names {
			if p.variable(x) == v {
				return true
			}
		}
	}
	return false
}

// judges reports whether a node sets a variable to what a function says of the error. Nothing is
// known then of the paths that depend on the variable.
func (p *paths) judges(n ast.Node) bool {
	assign, ok := n.(*ast.AssignStmt)
	if !ok || !p.mentions(assign, p.err) {
		return false
	}
	for _, x := range assign.Lhs {
		if t := p.info.TypeOf(x); t != nil && types.Identical(t.Underlying(), types.Typ[types.Bool]) {
			return true
		}
	}
	return false
}

// mentions reports whether a node uses a variable.
func (p *paths) mentions(n ast.Node, v *types.Var) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && p.info.Uses[id] == v
		return !found
	})
	return found
}

// after returns whether the lock may still be held if a condition is true, and if it is false. A
// condition on the error that it does not understand ends both paths.
func (p *paths) after(cond ast.Expr, fresh bool) (onTrue, onFalse bool) {
	switch x := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			onTrue, onFalse = p.after(x.X, fresh)
			return onFalse, onTrue
		}
	case *ast.BinaryExpr:
		switch x.Op {
		case token.LAND:
			t1, f1 := p.after(x.X, fresh)
			t2, f2 := p.after(x.Y, fresh)
			return t1 && t2, f1 || f2
		case token.LOR:
			t1, f1 := p.after(x.X, fresh)
			t2, f2 := p.after(x.Y, fresh)
			return t1 || t2, f1 && f2
		case token.EQL, token.NEQ:
			equal, different, known := p.compare(x, fresh)
			if known && x.Op == token.EQL {
				return equal, different
			} else if known {
				return different, equal
			}
		}
	case *ast.CallExpr:
		switch {
		case calls(p.info, x, "errors.Is", "errors.As"):
			return !(fresh && p.variable(ast.Unparen(x.Args[0])) == p.err) && !p.namesEnd(x), true
		case p.ofLock(x, "Valid"):
			return true, false
		}
	}
	if t := p.info.TypeOf(cond); t == nil || !types.Identical(t.Underlying(), types.Typ[types.Bool]) && !types.Identical(t, types.Typ[types.UntypedBool]) {
		return false, false // the case of a switch with a tag
	}
	understood := !fresh || !p.mentions(cond, p.err)
	return understood, understood
}

// compare returns whether the lock may be held if the two sides of a comparison are equal, and if
// they differ, if it knows that.
func (p *paths) compare(x *ast.BinaryExpr, fresh bool) (equal, different, known bool) {
	value, other := ast.Unparen(x.X), ast.Unparen(x.Y)
	if p.info.Types[value].IsNil() {
		value, other = other, value
	}
	isNil, v := p.info.Types[other].IsNil(), p.variable(value)
	call, _ := value.(*ast.CallExpr)
	switch {
	case v != nil && v == p.lock && isNil:
		return false, true, true
	case v != nil && v == p.err && fresh:
		return isNil, !isNil, true // err == zklock.ErrNotAcquired
	case call != nil && p.ofLock(call, "Err") && isNil:
		return true, false, true
	}
	return false, false, false
}

// ofLock reports whether a call is of a method of the lock.
func (p *paths) ofLock(call *ast.CallExpr, method string) bool {
	return methodName(call) == method && p.variable(receiver(call)) == p.lock
}

// namesEnd reports whether a call asks whether an error is the end of a lock.
func (p *paths) namesEnd(call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Args[1]).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	obj := p.info.Uses[sel.Sel]
	return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == core && (obj.Name() == "ErrLost" || obj.Name() == "ErrReleased")
}
