package zklockvet_test

import (
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/contrib/zklockvet"
)

// What each analyzer reports.
func ExampleAnalyzers() {
	for _, a := range zklockvet.Analyzers() {
		summary, _, _ := strings.Cut(a.Doc, "\n")
		fmt.Printf("%s: %s\n", a.Name, summary)
	}
	// Output:
	// outerctx: report work under a lock whose context does not end with the lock
	// nestedacquire: report acquisitions under a lock whose context does not carry that lock
	// unreleased: report locks that are not released on a path
	// releasectx: report releases with a context that may have ended
	// afterrelease: report uses of a lock after its Release
	// lockcontext: report work between Acquire and Release whose context does not end with the lock
	// acquireloop: report loops that acquire several locks one after the other
}
