package zklockvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"reflect"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// bindings are the functions of a package and what its variables are set to.
type bindings struct {
	pkg   *types.Package
	files *token.FileSet
	info  *types.Info
	funcs map[*types.Func]*ast.FuncDecl

	// values has what a variable is set to, one for each assignment: an expression, or the call
	// that returns it among others, or nil if it is neither. A parameter has nil.
	values map[*types.Var][]ast.Expr
}

var bindingsAnalyzer = &analysis.Analyzer{
	Name:       "zklockbindings",
	Doc:        "collects what the variables of a package are set to",
	Requires:   []*analysis.Analyzer{inspect.Analyzer},
	ResultType: reflect.TypeFor[*bindings](),
	Run:        bind,
}

func bind(pass *analysis.Pass) (any, error) {
	b := &bindings{pkg: pass.Pkg, files: pass.Fset, info: pass.TypesInfo, funcs: make(map[*types.Func]*ast.FuncDecl), values: make(map[*types.Var][]ast.Expr)}
	root := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root()
	for cur := range root.Preorder((*ast.FuncDecl)(nil), (*ast.FuncType)(nil), (*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil), (*ast.RangeStmt)(nil), (*ast.UnaryExpr)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.FuncDecl:
			if fn, ok := b.info.Defs[n.Name].(*types.Func); ok && n.Body != nil {
				b.funcs[fn] = n
			}
		case *ast.FuncType: // a caller sets the parameters
			for _, field := range n.Params.List {
				b.set(expressions(field.Names), nil)
			}
		case *ast.AssignStmt:
			b.set(n.Lhs, n.Rhs)
		case *ast.ValueSpec:
			if len(n.Values) > 0 {
				b.set(expressions(n.Names), n.Values)
			}
		case *ast.RangeStmt:
			b.set([]ast.Expr{n.Key, n.Value}, nil)
		case *ast.UnaryExpr: // the variable may be set through its address
			if n.Op == token.AND {
				b.set([]ast.Expr{n.X}, nil)
			}
		}
	}
	return b, nil
}

func expressions(names []*ast.Ident) (xs []ast.Expr) {
	for _, name := range names {
		xs = append(xs, name)
	}
	return xs
}

// set records that variables are set to values: as many, or those of one call.
func (b *bindings) set(to, values []ast.Expr) {
	for i, x := range to {
		v := b.variable(x)
		if v == nil {
			continue
		}
		var value ast.Expr
		switch {
		case len(values) == len(to):
			value = values[i]
		case len(values) == 1:
			value = values[0]
		}
		b.values[v] = append(b.values[v], value)
	}
}

// variable returns the variable that an expression names; nil if it names none.
func (b *bindings) variable(x ast.Expr) *types.Var {
	id, ok := x.(*ast.Ident)
	if !ok {
		return nil
	}
	v, _ := b.info.ObjectOf(id).(*types.Var)
	return v
}

// lookup returns what a name means at a position; nil if it means nothing there.
func (b *bindings) lookup(name string, at token.Pos) types.Object {
	scope := b.pkg.Scope().Innermost(at)
	if scope == nil {
		return nil
	}
	_, obj := scope.LookupParent(name, at)
	return obj
}

// value returns the only value of a variable that an expression names, and the expression itself if
// there is none.
func (b *bindings) value(x ast.Expr) ast.Expr {
	x = ast.Unparen(x)
	if v := b.variable(x); v != nil && len(b.values[v]) == 1 && b.values[v][0] != nil {
		return ast.Unparen(b.values[v][0])
	}
	return x
}

// function returns the code of a function value: a literal, a function of this package, or a
// variable that is set once, to one of these. Conversions are looked through. The type and body are
// nil for others.
func (b *bindings) function(x ast.Expr) (ast.Node, *ast.FuncType, *ast.BlockStmt) {
	switch x := b.value(x).(type) {
	case *ast.FuncLit:
		return x, x.Type, x.Body
	case *ast.CallExpr:
		if b.info.Types[x.Fun].IsType() && len(x.Args) == 1 {
			return b.function(x.Args[0])
		}
	case *ast.Ident, *ast.SelectorExpr:
		id, ok := x.(*ast.Ident)
		if !ok {
			id = x.(*ast.SelectorExpr).Sel
		}
		if fn, ok := b.info.Uses[id].(*types.Func); ok && b.funcs[fn] != nil {
			decl := b.funcs[fn]
			return decl, decl.Type, decl.Body
		}
	}
	return nil, nil, nil
}

// lineage yields a context and those that it is derived from, as expressions: a variable, then the
// call that it is set to, then that call's argument, and so on.
func (b *bindings) lineage(x ast.Expr) iter.Seq[ast.Expr] {
	return func(yield func(ast.Expr) bool) {
		for range 64 { // a variable may be derived from itself
			x = ast.Unparen(x)
			if !yield(x) {
				return
			}
			next := b.value(x)
			if next == x {
				if next = b.parent(x); next == nil {
					return
				}
			}
			x = next
		}
	}
}

// parent returns the context that a call derives another from; nil if it does not.
func (b *bindings) parent(x ast.Expr) ast.Expr {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return nil
	}
	result := b.info.TypeOf(call)
	if t, ok := result.(*types.Tuple); ok && t.Len() > 0 {
		result = t.At(0).Type()
	}
	if result == nil || !isContext(result) {
		return nil
	}
	for _, arg := range call.Args {
		if t := b.info.TypeOf(arg); t != nil && isContext(t) {
			return arg
		}
	}
	return nil
}

// mayEnd reports whether a context may have ended, as far as its origin shows: it does not end if
// it is derived from context.Background alone, or by context.WithoutCancel. A variable that is set in
// several places may have ended if each of its values may.
func (b *bindings) mayEnd(x ast.Expr) bool { return b.mayEndBut(x, make(map[*types.Var]bool)) }

func (b *bindings) mayEndBut(x ast.Expr, seen map[*types.Var]bool) bool {
	x = ast.Unparen(x)
	if v := b.variable(x); v != nil {
		if seen[v] {
			return true // derived from itself
		}
		seen[v] = true
		for _, value := range b.values[v] {
			if value != nil && !b.mayEndBut(value, seen) {
				return false
			}
		}
		return true
	}
	call, ok := x.(*ast.CallExpr)
	switch {
	case !ok || calls(b.info, call, limiting...):
		return true
	case calls(b.info, call, "context.Background", "context.TODO", "context.WithoutCancel"):
		return false
	case methodName(call) == "Context" && isTesting(b.info.TypeOf(receiver(call))):
		return false // it ends behind the deferred calls of the test
	}
	parent := b.parent(call)
	return parent == nil || b.mayEndBut(parent, seen)
}

// timing are the functions that derive a context with a time of its own, limiting all that derive one
// that ends by itself.
var (
	timing   = []string{"context.WithTimeout", "context.WithDeadline", "context.WithTimeoutCause", "context.WithDeadlineCause"}
	limiting = append([]string{"context.WithCancel", "context.WithCancelCause", "os/signal.NotifyContext", "(*" + core + ".Lock).Context"}, timing...)
)
