package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

// traceKey is the context key of a traceparent.
type traceKey struct{}

// TestKeptNameShowsItsHolderOnAServer: one client keeps a name and holds it ten times, while
// another client waits for it. What the waiting client reads describes those holds, and never an
// earlier use.
func TestKeptNameShowsItsHolderOnAServer(t *testing.T) {
	t.Parallel()
	hosts := sharedEnsemble(t).Hosts()
	ahead := make(chan zklock.Contender, 100)
	note := func(e zklock.WaitEvent) { ahead <- e.Ahead }
	keeper := dial(t, hosts, quick("keep", "1h"), zklock.WithHooks(zklock.Hooks{
		Inject: func(ctx context.Context) string { trace, _ := ctx.Value(traceKey{}).(string); return trace },
	}))
	other := dial(t, hosts, quick("keep", "1h"), zklock.WithHooks(zklock.Hooks{
		Wait: func(ctx context.Context, e zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			note(e)
			return ctx, nil
		},
		Ahead: func(_ context.Context, e zklock.WaitEvent) { note(e) },
	}))
	use := func(label string) *zklock.Lock {
		t.Helper()
		l, err := keeper.Mutex("x").Acquire(context.WithValue(within(t), traceKey{}, "trace of "+label), zklock.WithLabel(label))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for i := range 10 {
		for uses := 0; keeper.Stats().Kept == 0; uses++ {
			if uses == 100 {
				t.Fatalf("round %d: the name is not kept after %d uses", i, uses)
			}
			release(t, use("first"))
		}
		label := fmt.Sprint("hold ", i)
		held := use(label)
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		waiter := try(t, ctx, other.Mutex("x"))
		for described := false; !described; {
			switch c := receive(t, "a description of the holder", ahead); {
			case c.Label == label && c.Trace == "trace of "+label && !c.Kept:
				described = true
			case c.Label != "" || c.Trace != "" || !c.Since.IsZero():
				t.Errorf("%s: the waiter reads %+v", label, c)
				described = true
			}
		}
		if found, err := other.Contenders(within(t), "x"); err != nil || len(found) != 2 || found[0].Label != label || found[0].Trace != "trace of "+label || found[0].Kept {
			t.Errorf("%s: contenders %+v, %v", label, found, err)
		}
		cancel()
		if _, err := waiter.result(t); !errors.Is(err, zklock.ErrNotAcquired) || !strings.Contains(err.Error(), fmt.Sprintf("%q", label)) {
			t.Errorf("%s: the error of the wait: %v", label, err)
		}
		release(t, held)
		eventually(t, "both clients have left the queue", func() bool { return contendersOf(t, other, "x") == 0 })
	}
}
