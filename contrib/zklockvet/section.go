package zklockvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// section is the code of a function that runs under a lock, and its context.
type section struct {
	runner string   // the function that runs it: zklock.Do
	fn     ast.Node // *ast.FuncLit or *ast.FuncDecl
	body   *ast.BlockStmt

	// inner is the parameter with the context that ends with the lock, nil if it has no name: a
	// context.Context, an *http.Request or a *gin.Context.
	inner *types.Var
	param *ast.Ident // of inner, or _

	lock   *types.Var // the parameter with the lock, nil if it has none
	passed ast.Expr   // the context that inner is derived from, nil if the call has none

	// callers is true if contexts from outside may end with the lock. Only one that never ends is a mistake.
	callers bool
}

// runner is a function that calls another under a lock.
type runner struct {
	name    string // for people
	fn, ctx int    // the arguments with the function and with the context; -1 if there is none
}

var runners = map[string]runner{
	core + ".Do":                       {"zklock.Do", 2, 0},
	once + ".Do":                       {"once.Do", 4, 0},
	once + ".Every":                    {"once.Every", 4, 0},
	"(*" + election + ".Election).Run": {"Election.Run", 1, 0},
	cron + ".Once":                     {"gocronlock.Once", 3, -1},
	fenced:                             {"fence.InTx", 4, 0},
	"(*" + cron + ".Elector).Do":       {"Elector.Do", 1, 0},
}

// sections are the functions of a package that run under a lock.
type sections struct {
	*bindings
	all []section

	// code has the same functions, as literals or declarations.
	code map[ast.Node]bool
}

var sectionsAnalyzer = &analysis.Analyzer{
	Name:       "zklocksections",
	Doc:        "finds the functions that run under a lock",
	Requires:   []*analysis.Analyzer{inspect.Analyzer, bindingsAnalyzer},
	ResultType: reflect.TypeFor[*sections](),
	Run: func(pass *analysis.Pass) (any, error) {
		s := &sections{bindings: pass.ResultOf[bindingsAnalyzer].(*bindings), code: make(map[ast.Node]bool)}
		var all []*ast.CallExpr
		for cur := range pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root().Preorder((*ast.CallExpr)(nil)) {
			call := cur.Node().(*ast.CallExpr)
			s.find(call)
			all = append(all, call)
		}
		s.findWrapped(all)
		s.findServed(pass.TypesInfo)
		return s, nil
	},
}

// find adds what a call runs under a lock.
func (s *sections) find(call *ast.CallExpr) {
	if fn := callee(s.info, call); fn != nil {
		if r, ok := runners[fn.FullName()]; ok && r.fn < len(call.Args) {
			var passed ast.Expr
			if r.ctx >= 0 {
				passed = call.Args[r.ctx]
			}
			s.add(r.name, call.Args[r.fn], passed, isContext, fn.FullName() == fenced)
			return
		}
	}
	// lock(handler), where lock is what middleware.New has returned.
	if made, ok := s.value(call.Fun).(*ast.CallExpr); ok && calls(s.info, made, wrapper+".New") && len(call.Args) == 1 {
		s.addHandler(call.Args[0])
		return
	}
	// router.POST(path, lock, handler), where lock is what ginlock.New has returned.
	behind := false
	for _, arg := range call.Args {
		if made, ok := s.value(arg).(*ast.CallExpr); ok && calls(s.info, made, wrapper+"/ginlock.New") {
			behind = true
		} else if behind {
			s.add("ginlock.New", arg, nil, isGin, false)
		}
	}
}

// add adds a function that runs under a lock, if its code is in this package. Its context is its
// first parameter of a type.
func (s *sections) add(runner string, x, passed ast.Expr, typed func(types.Type) bool, callers bool) {
	if fn, signature, body := s.function(x); fn != nil {
		s.addCode(section{runner: runner, fn: fn, body: body, passed: passed, callers: callers}, signature, typed)
	}
}

// addCode adds a function with its context and its lock.
func (s *sections) addCode(found section, signature *ast.FuncType, typed func(types.Type) bool) {
	if s.code[found.fn] {
		return
	}
	for _, field := range signature.Params.List {
		t := s.info.TypeOf(field.Type)
		switch {
		case t == nil || len(field.Names) == 0:
		case typed(t) && found.param == nil:
			found.param = field.Names[0]
			found.inner, _ = s.info.Defs[found.param].(*types.Var)
		case isHeld(t):
			found.lock, _ = s.info.Defs[field.Names[0]].(*types.Var)
		}
	}
	s.code[found.fn] = true
	s.all = append(s.all, found)
}

// outer reports whether an expression is a context from outside of a section: a variable, a field,
// the result of a method Context, or a context that never ends.
func (s *sections) outer(at section, x ast.Expr) bool {
	x = ast.Unparen(x)
	if t := s.info.TypeOf(x); t == nil || !isContext(t) {
		return false
	}
	if at.callers {
		return s.endless(x)
	}
	switch x := x.(type) {
	case *ast.Ident:
		v := s.variable(x)
		return s.endless(x) || v != nil && !within(at.fn, v.Pos()) && len(assignedIn(s.bindings, at.body, v)) == 0
	case *ast.SelectorExpr:
		return s.outside(at, x.X)
	case *ast.CallExpr:
		return s.endless(x) || methodName(x) == "Context" && len(x.Args) == 0 && !isTesting(s.info.TypeOf(receiver(x))) && s.outside(at, receiver(x))
	}
	return false
}

// outside reports whether the variable at the root of an expression, such as s in s.base.ctx, was
// set before a section began, and is not what the section got its context in.
func (s *sections) outside(at section, x ast.Expr) bool {
	for {
		switch y := ast.Unparen(x).(type) {
		case *ast.SelectorExpr:
			x = y.X
			continue
		case *ast.StarExpr:
			x = y.X
			continue
		}
		break
	}
	v := s.variable(ast.Unparen(x))
	return v != nil && v != at.inner && !within(at.body, v.Pos()) && len(assignedIn(s.bindings, at.body, v)) == 0
}

// passesLock reports whether a section ignores its context and passes its lock on, so that others
// make their contexts from that.
func (s *sections) passesLock(at section) (found bool) {
	if at.lock == nil || at.param != nil && at.param.Name != "_" {
		return false
	}
	ast.Inspect(at.body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || keepsNothing(callee(s.info, call)) {
			return !found
		}
		for _, arg := range call.Args {
			found = found || s.variable(ast.Unparen(arg)) == at.lock
		}
		return !found
	})
	return found
}

// isTesting reports whether a type is that of a test, whose context ends when the test does.
func isTesting(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "testing"
}

// assignedIn returns the assignments to a variable below a node.
func assignedIn(b *bindings, root ast.Node, v *types.Var) (found []*ast.AssignStmt) {
	ast.Inspect(root, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			for _, x := range a.Lhs {
				if b.variable(x) == v {
					found = append(found, a)
				}
			}
		}
		return true
	})
	return found
}

// within reports whether a position is in a node.
func within(n ast.Node, p token.Pos) bool { return n.Pos() <= p && p < n.End() }
