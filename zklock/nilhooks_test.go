//go:build !race

package zklock

import (
	"context"
	"testing"
)

// What start returned; kept, as the callers of start may, so that no compiler
// makes on the stack what would be on the heap there.
var (
	keptAcquire   ender[AcquireResult]
	keptWait      ender[WaitResult]
	keptRelease   ender[ReleaseResult]
	keptOperation ender[error]
)

// TestNilHooksAllocations: a hook that nobody has set costs nothing.
func TestNilHooksAllocations(t *testing.T) {
	ctx := context.Background()
	n := testing.AllocsPerRun(1000, func() {
		_, keptAcquire = start[AcquireEvent, AcquireResult](nil, ctx, AcquireEvent{Name: "a"})
		_, keptWait = start[WaitEvent, WaitResult](nil, ctx, WaitEvent{Name: "a"})
		_, keptRelease = start[ReleaseEvent, ReleaseResult](nil, ctx, ReleaseEvent{})
		_, keptOperation = start[OperationEvent, error](nil, ctx, OperationEvent{Kind: "enqueue"})
		keptOperation.call(nil)
		keptRelease.call(ReleaseResult{})
		keptWait.call(WaitResult{})
		keptAcquire.call(AcquireResult{})
	})
	if n != 0 {
		t.Errorf("%v allocations for hooks that are nil, want none", n)
	}
}
