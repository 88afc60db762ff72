package zklockvet

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// OuterContext reports contexts from outside of a function that runs under a lock.
var OuterContext = &analysis.Analyzer{
	Name: "outerctx",
	Doc: `report work under a lock whose context does not end with the lock

The function given to zklock.Do gets a context that ends when the lock is lost. Work that gets the
context from outside continues then, at the same time as that of the next holder:

	zklock.Do(ctx, mutex, func(held context.Context, lock *zklock.Lock) error {
		return charge(ctx) // use held
	})

The same goes for once.Do, once.Every, Election.Run, package gocronlock, and for handlers behind the
middleware of net/http and gin, and for what a function of the package wraps around one of these, or around
Lock.Context. Behind that of gin, *gin.Context is not to be passed on, as it does
not end before gin.Engine.ContextWithFallback is set.

A literal context.Background() is reported there, too, and in the function given to fence.InTx, in functions
that call zklock.FromContext, and in the methods of a service of gRPC or connect that is registered in a package
which makes the interceptors. Behind a receive from Done, work is that of the end: it may have any context.`,
	Requires: []*analysis.Analyzer{sectionsAnalyzer},
	Run:      runOuterContext,
}

func runOuterContext(pass *analysis.Pass) (any, error) {
	s := pass.ResultOf[sectionsAnalyzer].(*sections)
	fallback := usesFallback(pass)
	for _, at := range s.all {
		if s.passesLock(at) {
			continue
		}
		var found []ast.Expr
		for call := range s.work(at) {
			if waits(s.info, call) || harmless(s.info, call) {
				continue // NestedAcquire reports acquisitions
			}
			for i, arg := range call.Args {
				if s.outer(at, arg) || !fallback && s.ginContext(at, call, i) {
					found = append(found, ast.Unparen(arg))
				}
			}
		}
		for i, x := range found {
			pass.Report(analysis.Diagnostic{
				Pos: x.Pos(), End: x.End(),
				Message:        types.ExprString(x) + " does not end when the lock of " + at.runner + " is lost: use " + at.innerText(),
				SuggestedFixes: s.useInner(at, found, i),
			})
		}
	}
	return nil, nil
}

// harmless reports whether a call may have any context: it only reads values of it, makes one that
// is meant to outlive the lock, or is a request about locks and not part of the work.
func harmless(info *types.Info, call *ast.CallExpr) bool {
	fn := callee(info, call)
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	if calls(info, call, core+".FromContext", core+".HeldIn") {
		return false
	}
	switch fn.Pkg().Path() {
	case core, election, "log/slog":
		return true
	}
	return logs(fn) || strings.HasSuffix(fn.Name(), "FromContext") || calls(info, call, "context.WithoutCancel", "context.Cause", "context.AfterFunc")
}

// logs reports whether a function writes to a log, by its name: it returns nothing that the work could wait for.
func logs(fn *types.Func) bool {
	return fn.Signature().Results().Len() == 0 && logName.MatchString(fn.Name())
}

var logName = regexp.MustCompile(`(^log|Log)([A-Z].*|f|ln|)$|^(Debug|Info|Warn|Warning|Error|Trace|Print)(f|w|ln|Context|Ctx|)$`)

// ginContext reports whether an argument is the *gin.Context of a section, passed as a
// context.Context.
func (s *sections) ginContext(at section, call *ast.CallExpr, i int) bool {
	if at.inner == nil || !isGin(at.inner.Type()) || s.variable(ast.Unparen(call.Args[i])) != at.inner {
		return false
	}
	called := s.info.TypeOf(call.Fun)
	if called == nil {
		return false
	}
	signature, ok := called.Underlying().(*types.Signature)
	return ok && i < signature.Params().Len() && isContext(signature.Params().At(i).Type())
}

// usesFallback reports whether a package sets ContextWithFallback, so that a *gin.Context ends with
// the context of its request.
func usesFallback(pass *analysis.Pass) bool {
	for id := range pass.TypesInfo.Uses {
		if id.Name == "ContextWithFallback" {
			return true
		}
	}
	return false
}

// innerText returns what to use in a section, as code if it has a name.
func (at section) innerText() string {
	if at.inner == nil || at.inner.Name() == "_" {
		if at.callers && at.passed != nil {
			return types.ExprString(at.passed)
		}
		return "the context that the function gets"
	}
	switch t := at.inner.Type(); {
	case isStream(t):
		return at.inner.Name() + ".Context()"
	case isRequest(t):
		return at.inner.Name() + ".Context()"
	case isGin(t):
		return at.inner.Name() + ".Request.Context()"
	}
	return at.inner.Name()
}

// useInner returns the fix for one of the contexts that were found: it replaces the context by that
// of the function, or gives that one its name. There is none if the function's context may be
// derived from another one, or has another name there.
func (s *sections) useInner(at section, found []ast.Expr, i int) []analysis.SuggestedFix {
	x := found[i]
	v := s.variable(x)
	if v != nil && within(at.fn, v.Pos()) {
		return nil // without this use, the variable may be one that is not used
	}
	if v == nil && s.endless(x) {
		if at.param == nil || at.param.Name == "_" || s.lookup(at.param.Name, x.Pos()) != at.inner {
			return nil
		}
		return replace("Use "+at.innerText(), x, at.innerText())
	}
	if _, literal := at.fn.(*ast.FuncLit); !literal || at.passed == nil || at.param == nil || types.ExprString(ast.Unparen(at.passed)) != types.ExprString(x) {
		return nil
	}
	if v != nil && v != s.variable(ast.Unparen(at.passed)) {
		return nil
	}
	if at.param.Name != "_" {
		if s.lookup(at.param.Name, x.Pos()) != at.inner {
			return nil
		}
		return replace("Use "+at.param.Name, x, at.param.Name)
	}
	if v == nil || i > 0 || s.uses(at.body, v) != len(found) {
		return nil // the name would change the meaning of other uses
	}
	return replace("Name the context "+v.Name(), at.param, v.Name())
}

// uses counts the uses of a variable below a node.
func (s *sections) uses(root ast.Node, v *types.Var) (n int) {
	ast.Inspect(root, func(x ast.Node) bool {
		if id, ok := x.(*ast.Ident); ok && s.info.Uses[id] == v {
			n++
		}
		return true
	})
	return n
}

// replace returns the fix that replaces a node.
func replace(message string, n ast.Node, text string) []analysis.SuggestedFix {
	return []analysis.SuggestedFix{{Message: message, TextEdits: []analysis.TextEdit{{Pos: n.Pos(), End: n.End(), NewText: []byte(text)}}}}
}
