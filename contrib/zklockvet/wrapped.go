package zklockvet

import (
	"go/ast"
	"go/types"
)

// findWrapped adds what wrappers of this package run under a lock. A wrapper is a function that gets another one, and gives it to
// zklock.Do, say, or calls it there with the context of the lock, or with that of Lock.Context:
//
//	func (s *shop) locked(ctx context.Context, name string, fn func(context.Context) error) error {
//		return zklock.Do(ctx, s.client.Mutex(name), func(ctx context.Context, _ *zklock.Lock) error { return fn(ctx) })
//	}
func (s *sections) findWrapped(all []*ast.CallExpr) {
	wrappers := make(map[*types.Func]runner)
	for more := true; more; { // a wrapper may call another one
		known := len(wrappers)
		for _, call := range all {
			if r, ok := s.runner(call, wrappers); ok {
				s.add(r.name, call.Args[r.fn], passedTo(call, r), isContext, false)
				s.wrapper(call.Args[r.fn], passedTo(call, r), wrappers)
			}
		}
		for _, call := range all {
			if lock := s.ofLockContext(call); lock != nil {
				s.wrapper(call.Fun, lock.Args[0], wrappers)
			}
		}
		for _, at := range s.all {
			ast.Inspect(at.body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && at.inner != nil && s.gives(call, at.inner) {
					s.wrapper(call.Fun, at.passed, wrappers)
				}
				return true
			})
		}
		more = len(wrappers) > known
	}
}

// runner returns how a call runs one of its arguments under a lock.
func (s *sections) runner(call *ast.CallExpr, wrappers map[*types.Func]runner) (runner, bool) {
	fn := callee(s.info, call)
	if fn == nil || fn.FullName() == fenced {
		return runner{}, false
	}
	r, ok := wrappers[fn.Origin()]
	if !ok {
		r, ok = runners[fn.FullName()]
	}
	return r, ok && r.fn < len(call.Args) && !s.isMethodExpr(call)
}

// isMethodExpr reports whether a call has its receiver as the first argument, as (*shop).locked(s, ctx) does.
func (s *sections) isMethodExpr(call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return ok && s.info.Selections[sel] != nil && s.info.Selections[sel].Kind() == types.MethodExpr
}

// passedTo returns the context that a call derives that of the lock from; nil if it gets none.
func passedTo(call *ast.CallExpr, r runner) ast.Expr {
	if r.ctx < 0 || r.ctx >= len(call.Args) {
		return nil
	}
	return call.Args[r.ctx]
}

// gives reports whether a call gets a context, or one that is derived from it.
func (s *sections) gives(call *ast.CallExpr, inner *types.Var) bool {
	for _, arg := range call.Args {
		if t := s.info.TypeOf(arg); t == nil || !isContext(t) {
			continue
		}
		for x := range s.lineage(arg) {
			if s.variable(x) == inner {
				return true
			}
			if s.detaches(x) {
				break
			}
		}
	}
	return false
}

// ofLockContext returns the call of Lock.Context whose result a call gets, or a context that is derived from it; nil if it gets none.
func (s *sections) ofLockContext(call *ast.CallExpr) *ast.CallExpr {
	for _, arg := range call.Args {
		if t := s.info.TypeOf(arg); t == nil || !isContext(t) {
			continue
		}
		for x := range s.lineage(arg) {
			if s.detaches(x) {
				break
			}
			if made, ok := x.(*ast.CallExpr); ok && calls(s.info, made, "(*"+core+".Lock).Context") && len(made.Args) == 1 {
				return made
			}
		}
	}
	return nil
}

// detaches reports whether a call makes a context that does not end with the one that it gets.
func (s *sections) detaches(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	return ok && calls(s.info, call, "context.WithoutCancel", core+".Detach")
}

// wrapper records the function that has a parameter which is run under a lock, if the expression names one.
func (s *sections) wrapper(x, passed ast.Expr, wrappers map[*types.Func]runner) {
	v := s.variable(ast.Unparen(x))
	if v == nil || len(s.values[v]) != 1 || s.values[v][0] != nil {
		return
	}
	for fn, decl := range s.funcs {
		if !within(decl.Type.Params, v.Pos()) {
			continue
		}
		r := runner{name: fn.Name(), fn: -1, ctx: -1}
		params := fn.Signature().Params()
		for i := range params.Len() {
			switch p := params.At(i); {
			case p == v && !(fn.Signature().Variadic() && i == params.Len()-1):
				r.fn = i
			case passed != nil && p == s.variable(ast.Unparen(passed)):
				r.ctx = i
			}
		}
		if _, known := wrappers[fn]; !known && r.fn >= 0 {
			wrappers[fn] = r
		}
	}
}

// addHandler adds a handler behind the middleware: a function, the method ServeHTTP of a type, or one that another function wraps,
// as in lock(logged(http.HandlerFunc(pay))).
func (s *sections) addHandler(x ast.Expr) {
	const runner = "middleware.New"
	if fn, _, _ := s.function(x); fn != nil {
		s.add(runner, x, nil, isRequest, false)
		return
	}
	x = s.value(x)
	t := s.info.TypeOf(x)
	if t == nil {
		return
	}
	obj, _, _ := types.LookupFieldOrMethod(t, true, s.pkg, "ServeHTTP")
	if fn, ok := obj.(*types.Func); ok && s.funcs[fn.Origin()] != nil {
		decl := s.funcs[fn.Origin()]
		s.addCode(section{runner: runner, fn: decl, body: decl.Body}, decl.Type, isRequest)
		return
	}
	if call, ok := x.(*ast.CallExpr); ok {
		for _, arg := range call.Args {
			if t := s.info.TypeOf(arg); t != nil && isHandler(t) {
				s.addHandler(arg)
			}
		}
	}
}

// isHandler reports whether a type is that of a handler of net/http, or of a function that can be one.
func isHandler(t types.Type) bool {
	if obj, _, _ := types.LookupFieldOrMethod(t, true, nil, "ServeHTTP"); obj != nil {
		return true
	}
	fn, ok := t.Underlying().(*types.Signature)
	return ok && fn.Params().Len() == 2 && isNamed(fn.Params().At(0).Type(), "net/http", "ResponseWriter") && isRequest(fn.Params().At(1).Type())
}
