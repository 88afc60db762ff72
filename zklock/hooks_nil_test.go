//go:build !race

package zklock

import (
	"context"
	"testing"

	"github.com/zklock/go-zklock/zklock/internal/hook"
)

// The results of start. The tests keep them in variables, as a caller of start may.
// Otherwise the compiler could put on the stack what such a caller has on the heap.
var (
	keptAcquire   hook.End[AcquireResult]
	keptWait      hook.End[WaitResult]
	keptRelease   hook.End[ReleaseResult]
	keptOperation hook.End[error]
)

// TestNilHooksAllocations: a hook that is not set allocates nothing.
func TestNilHooksAllocations(t *testing.T) {
	ctx := context.Background()
	n := testing.AllocsPerRun(1000, func() {
		_, keptAcquire = hook.Start[AcquireEvent, AcquireResult](nil, ctx, AcquireEvent{Name: "a"})
		_, keptWait = hook.Start[WaitEvent, WaitResult](nil, ctx, WaitEvent{Name: "a"})
		_, keptRelease = hook.Start[ReleaseEvent, ReleaseResult](nil, ctx, ReleaseEvent{})
		_, keptOperation = hook.Start[OperationEvent, error](nil, ctx, OperationEvent{Kind: "enqueue"})
		keptOperation.Call(nil)
		keptRelease.Call(ReleaseResult{})
		keptWait.Call(WaitResult{})
		keptAcquire.Call(AcquireResult{})
	})
	if n != 0 {
		t.Errorf("%v allocations for hooks that are nil, want none", n)
	}
}
