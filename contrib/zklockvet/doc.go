// Package zklockvet finds mistakes in programs that use zklock, for go vet and golangci-lint. Each
// mistake has an analyzer of its own:
//
//	outerctx       work under a lock gets a context that does not end with the lock
//	nestedacquire  a lock is acquired under another, with a context that does not carry the other
//	unreleased     a lock is not released on a path
//	releasectx     a lock is released with a context that may have ended
//	afterrelease   a lock is used after its release
//	lockcontext    the context of a lock is dropped, or work under the lock gets another one
//	acquireloop    a loop acquires several locks, one after the other
//
// Command cmd/zklockvet is the tool for go vet -vettool, and package golangci the plugin for
// golangci-lint.
//
// The analyzers report what is wrong as far as one package shows. They leave out what a program
// may do on purpose: goroutines, deferred calls and the handling of errors may use an outer
// context, and a lock that a function stores, returns or passes on has another owner then. Tests may
// leave locks to the Close of their client.
package zklockvet

import "golang.org/x/tools/go/analysis"

// Analyzers returns all analyzers.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{OuterContext, NestedAcquire, Unreleased, ReleaseContext, AfterRelease, LockContext, AcquireLoop}
}
