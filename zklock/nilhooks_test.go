//go:build !race

package zklock

import (
	"context"
	"testing"
)

// TestNilHooksAllocations: a hook that nobody has set costs nothing.
func TestNilHooksAllocations(t *testing.T) {
	ctx := context.Background()
	n := testing.AllocsPerRun(1000, func() {
		_, acquired := start[AcquireEvent, AcquireResult](nil, ctx, AcquireEvent{Name: "a"})
		_, waited := start[WaitEvent, WaitResult](nil, ctx, WaitEvent{Name: "a"})
		_, released := start[ReleaseEvent, ReleaseResult](nil, ctx, ReleaseEvent{})
		_, answered := start[OperationEvent, error](nil, ctx, OperationEvent{Kind: "enqueue"})
		answered.call(nil)
		released.call(ReleaseResult{})
		waited.call(WaitResult{})
		acquired.call(AcquireResult{})
	})
	if n != 0 {
		t.Errorf("%v allocations for hooks that are nil, want none", n)
	}
}
