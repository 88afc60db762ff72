package zklockvet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// NestedAcquire reports acquisitions under a lock that do not have its context.
var NestedAcquire = &analysis.Analyzer{
	Name: "nestedacquire",
	Doc: `report acquisitions under a lock whose context does not carry that lock

A second lock that is acquired in the function given to zklock.Do needs the context of that function.
With another one the wait continues after the first lock was lost, and an acquisition of a name that
is held already waits for itself, where the right context makes it fail with ErrDeadlock:

	zklock.Do(ctx, account, func(held context.Context, lock *zklock.Lock) error {
		other, err := ledger.Acquire(context.Background()) // use held
		...
	})

An acquisition that must not depend on the lock has zklock.Detach, or is in a goroutine.`,
	Requires: []*analysis.Analyzer{sectionsAnalyzer},
	Run:      runNestedAcquire,
}

func runNestedAcquire(pass *analysis.Pass) (any, error) {
	s := pass.ResultOf[sectionsAnalyzer].(*sections)
	for _, at := range s.all {
		for call := range s.work(at) {
			if !waits(s.info, call) || len(call.Args) == 0 {
				continue
			}
			x := ast.Unparen(call.Args[0])
			if !s.foreign(at, x) {
				continue
			}
			pass.Report(analysis.Diagnostic{
				Pos: x.Pos(), End: x.End(),
				Message:        types.ExprString(x) + " does not carry the lock of " + at.runner + ": use " + at.innerText() + ", or zklock.Detach if the acquisition is not part of the work under it",
				SuggestedFixes: s.useInner(at, []ast.Expr{x}, 0),
			})
		}
	}
	return nil, nil
}

// foreign reports whether a context does not carry the lock of a section: it is derived from one
// from outside, or from none.
func (s *sections) foreign(at section, x ast.Expr) bool {
	for x := range s.lineage(x) {
		if call, ok := x.(*ast.CallExpr); ok {
			switch {
			case calls(s.info, call, core+".Detach", "(*"+core+".Lock).Context"):
				return false
			case calls(s.info, call, "context.Background", "context.TODO"):
				return true
			}
		}
		if s.outer(at, x) {
			return true
		}
	}
	return false
}
