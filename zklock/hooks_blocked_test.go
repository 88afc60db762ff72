package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A hook that blocks holds up what the comment of Hooks says, and nothing else: the lock x, for other
// clients, is held or free, and its own client acquires other locks.
func TestWhatABlockedHookHoldsUp(t *testing.T) {
	ctx := context.Background()
	acquire := func(a, _ *zklock.Client) { _, _ = a.Mutex("x").Acquire(ctx) }
	release := func(a, _ *zklock.Client) {
		if l, err := a.Mutex("x").Acquire(ctx); err == nil {
			_ = l.Release(ctx)
		}
	}
	behind := func(a, b *zklock.Client) { // a waits for b
		l, err := b.Mutex("x").Acquire(ctx)
		if err != nil {
			return
		}
		go acquire(a, b)
		time.Sleep(time.Second)
		_ = l.Release(ctx)
	}
	handOver := func(a, b *zklock.Client) {
		l, err := a.Mutex("x").Acquire(ctx)
		if err != nil {
			return
		}
		go acquire(a, b)
		time.Sleep(10 * time.Millisecond)
		_ = l.Release(ctx)
	}
	for name, c := range map[string]struct {
		hooks func(block func()) zklock.Hooks
		begin func(a, b *zklock.Client)
		held  bool // x is held, while the hook blocks
	}{
		"Acquire": {func(block func()) zklock.Hooks {
			return zklock.Hooks{Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
				block()
				return ctx, nil
			}}
		}, acquire, false},
		"Inject": {func(block func()) zklock.Hooks {
			return zklock.Hooks{Inject: func(context.Context) string { block(); return "" }}
		}, acquire, false},
		"Label": {func(block func()) zklock.Hooks {
			return zklock.Hooks{Label: func(context.Context) string { block(); return "" }}
		}, acquire, false},
		"the end of Acquire": {func(block func()) zklock.Hooks {
			return zklock.Hooks{Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
				return ctx, func(zklock.AcquireResult) { block() }
			}}
		}, acquire, true},
		"Wait": {func(block func()) zklock.Hooks {
			return zklock.Hooks{Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
				block()
				return ctx, nil
			}}
		}, behind, true},
		"the end of Wait": {func(block func()) zklock.Hooks {
			return zklock.Hooks{Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
				return ctx, func(zklock.WaitResult) { block() }
			}}
		}, behind, true},
		"Handover": {func(block func()) zklock.Hooks {
			return zklock.Hooks{Handover: func(context.Context, zklock.HandoverEvent) { block() }}
		}, handOver, true},
		"Release": {func(block func()) zklock.Hooks {
			return zklock.Hooks{Release: func(ctx context.Context, _ zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
				block()
				return ctx, nil
			}}
		}, release, true},
		"the end of Release": {func(block func()) zklock.Hooks {
			return zklock.Hooks{Release: func(ctx context.Context, _ zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
				return ctx, func(zklock.ReleaseResult) { block() }
			}}
		}, release, false},
		"Session": {func(block func()) zklock.Hooks {
			return zklock.Hooks{Session: func(zklock.SessionEvent) { block() }}
		}, release, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, gate, blocked := memdriver.New(), make(chan struct{}), make(chan struct{}, 1)
			a := connect(t, e.Connector(), nil, zklock.WithHooks(c.hooks(func() {
				select {
				case blocked <- struct{}{}: // the first call
					<-gate
				default:
				}
			})))
			b := connect(t, e.Connector(), nil)
			go c.begin(a, b)
			time.Sleep(10 * time.Second)
			if len(blocked) != 1 {
				t.Fatalf("%s was not called", name)
			}
			l, err := b.Mutex("x").TryAcquire(t.Context())
			switch {
			case c.held && !errors.Is(err, zklock.ErrNotAcquired), !c.held && err != nil:
				t.Errorf("%s blocks, and a try of another client returns %v; the lock should be held: %v", name, err, c.held)
			case err == nil:
				mustRelease(t, l)
			}
			mustRelease(t, mustLock(t)(a.Mutex("y").Acquire(t.Context())))
			close(gate)
			synctest.Wait()
		})
	}
}

// A Lost hook that blocks holds up Close, and no lock.
func TestABlockedLostHookHoldsUpCloseOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, gate := memdriver.New(), make(chan struct{})
		a, err := zklock.OpenConnector(e.Connector(), zklock.WithHooks(zklock.Hooks{Lost: func(context.Context, zklock.LostEvent) { <-gate }}))
		if err != nil {
			t.Fatal(err)
		}
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		e.Expire(e.Sessions()[0])
		<-l.Done()
		mustRelease(t, mustLock(t)(a.Mutex("x").Acquire(t.Context())))
		closed := make(chan error, 1)
		go func() { closed <- a.Close() }()
		time.Sleep(time.Minute)
		if len(closed) > 0 {
			t.Error("Close has returned before the Lost hook")
		}
		close(gate)
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// An Operation hook that blocks heartbeats costs the session, and its locks are over when the lease is.
func TestABlockedOperationHookCostsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, gate := memdriver.New(), make(chan struct{})
		a := connect(t, e.Connector(), nil, zklock.WithHooks(zklock.Hooks{Operation: func(ctx context.Context, o zklock.OperationEvent) (context.Context, func(error)) {
			if o.Kind == "heartbeat" || o.Kind == "sync" {
				<-gate
			}
			return ctx, nil
		}}))
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		until := l.Until()
		<-l.Done()
		if now := time.Now(); now.After(until) || !errors.Is(l.Err(), zklock.ErrLost) {
			t.Errorf("the lock has ended %v after its lease: %v", now.Sub(until), l.Err())
		}
		close(gate)
	})
}
