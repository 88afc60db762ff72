//go:build !race

package zklock_test

import (
	"context"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

// TestAllocations limits how many allocations each call makes. They are the library's
// own, since the ensemble of this test allocates next to nothing.
func TestAllocations(t *testing.T) {
	c, _ := forgetfulClient(t)
	m := c.Mutex("cycled")
	kept := keepingBenchClient(t).Mutex("kept")
	cycle(t, kept)
	cycle(t, kept)
	taken := c.Mutex("held")
	l := acquireFor(t, taken)
	ctx, cancel := l.Context(context.Background())
	defer cancel()
	for _, x := range []struct {
		what string
		most float64
		f    func()
	}{
		{"Valid", 0, func() { checkValid(t, l) }},
		{"Err", 0, func() { _ = l.Err() }},
		{"Token", 0, func() { _ = l.Token() }},
		{"FromContext", 0, func() { zklock.FromContext(ctx) }},
		{"Context and its cancel", 7, func() { deriveContext(t, l) }},
		{"TryAcquire of a name that this process holds", 6, func() { tryHeld(t, taken) }},
		{"Reenter and its Release", 6, func() { reenterHeld(t, ctx, taken) }},
		{"Acquire and Release", 50, func() { cycle(t, m) }},
		{"Acquire and Release of a kept name", 7, func() { cycle(t, kept) }},
		{"Do", 59, func() { doNothing(t, m) }},
	} {
		n := testing.AllocsPerRun(1000, x.f)
		t.Logf("%s: %v allocations", x.what, n)
		if n > x.most {
			t.Errorf("%s: %v allocations, want at most %v", x.what, n, x.most)
		}
	}
}
