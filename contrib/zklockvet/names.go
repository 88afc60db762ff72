package zklockvet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// The packages whose functions the analyzers know.
const (
	module   = "github.com/zklock/go-zklock/"
	core     = module + "zklock"
	once     = core + "/once"
	election = core + "/election"
	cron     = module + "contrib/gocronlock"
	wrapper  = module + "middleware"
	fenced   = core + "/fence.InTx"
	grpcs    = module + "interceptors"
	connects = module + "contrib/connectlock"
	gin      = "github.com/gin-gonic/gin"
)

// callee returns the function or method that a call names; nil for others, such as conversions and
// calls of function values.
func callee(info *types.Info, call *ast.CallExpr) *types.Func {
	fn, _ := typeutil.Callee(info, call).(*types.Func)
	return fn
}

// calls reports whether a call is of one of these functions, by their full names.
func calls(info *types.Info, call *ast.CallExpr, names ...string) bool {
	fn := callee(info, call)
	if fn == nil {
		return false
	}
	full := fn.FullName()
	for _, name := range names {
		if full == name {
			return true
		}
	}
	return false
}

// acquires reports whether a call acquires a lock and returns it: Acquire or TryAcquire of any
// type, or Campaign.
func acquires(info *types.Info, call *ast.CallExpr) bool {
	fn := callee(info, call)
	if fn == nil {
		return false
	}
	switch fn.Name() {
	case "Acquire", "TryAcquire", "Campaign":
		results := fn.Signature().Results()
		return results.Len() == 2 && isHeld(results.At(0).Type())
	}
	return false
}

// waits reports whether a call acquires a lock, also if it releases the lock before it returns.
func waits(info *types.Info, call *ast.CallExpr) bool {
	return acquires(info, call) || calls(info, call, core+".Do", once+".Do", once+".Every", once+".Forget", "(*"+election+".Election).Run")
}

// releases reports whether a call gives a lock back.
func releases(info *types.Info, call *ast.CallExpr) bool {
	return calls(info, call, "(*"+core+".Lock).Release", "(*"+election+".Term).Resign")
}

// endless reports whether an expression is a context that never ends, or a variable that is set to one, and never again. Tests
// may use one: they end with their client.
func (b *bindings) endless(x ast.Expr) bool {
	call, ok := b.value(x).(*ast.CallExpr)
	return ok && calls(b.info, call, "context.Background", "context.TODO") && !inTest(b.files.File(x.Pos()).Name())
}

// isHeld reports whether a type is that of a lock that is held: *zklock.Lock or *election.Term.
func isHeld(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	return ok && (isNamed(p.Elem(), core, "Lock") || isNamed(p.Elem(), election, "Term"))
}

// isContext reports whether a type is context.Context.
func isContext(t types.Type) bool { return isNamed(t, "context", "Context") }

// isGin reports whether a type is *gin.Context.
func isGin(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	return ok && isNamed(p.Elem(), gin, "Context")
}

// isRequest reports whether a type is *http.Request.
func isRequest(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	return ok && isNamed(p.Elem(), "net/http", "Request")
}

func isNamed(t types.Type, pkg, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == pkg
}

// isError reports whether a type is error.
func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// inTest reports whether a file is one of tests.
func inTest(file string) bool { return strings.HasSuffix(file, "_test.go") }
