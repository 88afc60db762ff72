package zklockvet

import (
	"go/ast"
	"go/types"
	"strings"
)

// findServed adds the functions that run under a lock which an interceptor has acquired: those that look for the lock in
// their context, and the methods of services, if the package makes interceptors. Their contexts may end with a lock.
func (s *sections) findServed(info *types.Info) {
	intercepted := false
	for id, obj := range info.Uses {
		if fn, ok := obj.(*types.Func); ok && fn.Pkg() != nil && id.Name == fn.Name() {
			switch fn.FullName() {
			case grpcs + ".UnaryServerInterceptor", grpcs + ".StreamServerInterceptor", connects + ".HandlerInterceptor":
				intercepted = true
			}
		}
	}
	services := make(map[*types.Named]bool)
	if intercepted {
		for x := range info.Types {
			if call, ok := x.(*ast.CallExpr); ok {
				s.registered(call, services)
			}
		}
	}
	for fn, decl := range s.funcs {
		found := section{runner: "zklock.FromContext", fn: decl, body: decl.Body, callers: true}
		if recv := fn.Signature().Recv(); recv != nil && services[named(recv.Type())] && fn.Exported() {
			found.runner = "the interceptor"
		} else if !s.asks(decl) {
			continue
		}
		s.addCode(found, decl.Type, func(t types.Type) bool { return isContext(t) || isRequest(t) || isStream(t) })
	}
}

// registered adds the types of services that a call registers with a server of gRPC or connect, by the names that
// their generators give.
func (s *sections) registered(call *ast.CallExpr, services map[*types.Named]bool) {
	fn := callee(s.info, call)
	if fn == nil {
		return
	}
	arg := -1
	switch name := fn.Name(); {
	case strings.HasPrefix(name, "Register") && strings.HasSuffix(name, "Server"):
		arg = 1
	case strings.HasPrefix(name, "New") && strings.HasSuffix(name, "Handler"):
		arg = 0
	}
	if arg < 0 || arg >= len(call.Args) {
		return
	}
	if n := named(s.info.TypeOf(call.Args[arg])); n != nil && n.Obj().Pkg() == s.pkg {
		services[n] = true
	}
}

// asks reports whether a function looks for a lock in the context that it gets.
func (s *sections) asks(decl *ast.FuncDecl) (found bool) {
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			if calls(s.info, n, core+".FromContext") && len(n.Args) == 1 {
				x := ast.Unparen(n.Args[0])
				if call, ok := x.(*ast.CallExpr); ok && methodName(call) == "Context" {
					x = receiver(call)
				}
				v := s.variable(x)
				found = found || v != nil && within(decl.Type.Params, v.Pos())
			}
		}
		return !found
	})
	return found
}

// named returns the named type of a value or of what it points to; nil if there is none.
func named(t types.Type) *types.Named {
	if t == nil {
		return nil
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	return n
}

// isStream reports whether a type is that of a handler's stream: an interface with a context.
func isStream(t types.Type) bool {
	if !types.IsInterface(t) || isContext(t) {
		return false
	}
	obj, _, _ := types.LookupFieldOrMethod(t, true, nil, "Context")
	fn, ok := obj.(*types.Func)
	return ok && fn.Signature().Params().Len() == 0 && fn.Signature().Results().Len() == 1 && isContext(fn.Signature().Results().At(0).Type())
}
