package zklockvet

import (
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/analysis/passes/inspect"
)

// TestAnalyzers runs all analyzers on all packages of testdata: they report what the comments say and
// nothing else, and their fixes give the code of the golden files. What these packages import has the
// names of the real packages; TestVettool takes those.
func TestAnalyzers(t *testing.T) {
	t.Parallel()
	all := &analysis.Analyzer{
		Name:     "all",
		Doc:      "runs all analyzers, so that the packages are loaded once",
		Requires: []*analysis.Analyzer{inspect.Analyzer, bindingsAnalyzer, sectionsAnalyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			for _, a := range Analyzers() {
				if _, err := a.Run(pass); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	}
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), all,
		"outerctx", "fallback", "nestedacquire", "unreleased", "releasectx", "afterrelease", "lockcontext", "acquireloop")
}

func TestAnalyzersAreValid(t *testing.T) {
	if err := analysis.Validate(Analyzers()); err != nil {
		t.Error(err)
	}
}
