package zklock_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// recovered runs f as a server runs a handler: it recovers from a panic, and returns its value.
func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// A panic in a hook goes on to the caller, which recovers from it, as servers do. No lock stays held, no queue entry stays,
// and other goroutines of the client get the lock. So it is if the hook ends its goroutine, as the end of a test does.
func TestPanicInAHookGivesTheLockBack(t *testing.T) {
	kinds := map[string]struct {
		of   func(c *zklock.Client) zklock.Acquirer
		opts []zklock.AcquireOption
	}{
		"mutex":    {of: func(c *zklock.Client) zklock.Acquirer { return c.Mutex("x") }},
		"readers":  {of: func(c *zklock.Client) zklock.Acquirer { return c.RWMutex("x").Reader() }},
		"a permit": {of: func(c *zklock.Client) zklock.Acquirer { return c.Semaphore("x", 1) }},
		"names":    {of: func(c *zklock.Client) zklock.Acquirer { return zklock.All(c.Mutex("x"), c.Mutex("y")) }},
		"candidates": {of: func(c *zklock.Client) zklock.Acquirer { return c.Mutex("x") },
			opts: []zklock.AcquireOption{zklock.WithCandidacy()}},
		"tries": {of: func(c *zklock.Client) zklock.Acquirer { return c.Mutex("x") },
			opts: []zklock.AcquireOption{zklock.WithWait(0)}},
		"releases that do not wait": {of: func(c *zklock.Client) zklock.Acquirer { return c.Mutex("x") },
			opts: []zklock.AcquireOption{zklock.WithAsyncRelease()}},
	}
	for kind, k := range kinds {
		for how, end := range map[string]func(){"panics": func() { panic("no") }, "ends": runtime.Goexit} {
			t.Run(kind+" "+how, func(t *testing.T) { panicInHooks(t, k.of, k.opts, end, kind == "mutex") })
		}
	}
}

// panicInHooks is TestPanicInAHookGivesTheLockBack for a kind of lock, and for how a hook ends. always says that each of the
// hooks is called.
func panicInHooks(t *testing.T, of func(*zklock.Client) zklock.Acquirer, opts []zklock.AcquireOption, end func(), always bool) {
	acquire := func(ctx context.Context, a *zklock.Client) {
		if l, err := of(a).Acquire(ctx, append([]zklock.AcquireOption{zklock.WithWait(time.Minute)}, opts...)...); err == nil {
			_ = l.Release(ctx)
		}
	}
	holds := func(c *zklock.Client) zklock.Acquirer { // what all kinds wait for
		switch a := of(c).(type) {
		case *zklock.Reader:
			return c.RWMutex("x").Writer()
		default:
			return a
		}
	}
	for name, c := range map[string]struct {
		hooks func(panics func()) zklock.Hooks
		local bool // the acquisition waits for another goroutine of its client, and else for another client
		keys  map[string]string
		third bool // a contender between the two gives up
	}{
		"Acquire": {hooks: func(panics func()) zklock.Hooks {
			return zklock.Hooks{Acquire: func(context.Context, zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
				panics()
				return nil, nil
			}}
		}},
		"the end of Acquire": {hooks: func(panics func()) zklock.Hooks {
			return zklock.Hooks{Acquire: func(context.Context, zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
				return nil, func(zklock.AcquireResult) { panics() }
			}}
		}},
		"the end of Acquire by a hand-over": {local: true, hooks: func(panics func()) zklock.Hooks {
			var waited atomic.Bool
			return zklock.Hooks{
				Wait: func(context.Context, zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
					waited.Store(true)
					return nil, nil
				},
				Acquire: func(context.Context, zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
					return nil, func(zklock.AcquireResult) {
						if waited.Load() {
							panics()
						}
					}
				}}
		}},
		"Wait":                   {hooks: onWait},
		"Wait in the process":    {hooks: onWait, local: true},
		"Ahead":                  {hooks: onAhead, third: true},
		"the end of Wait":        {hooks: onWaitEnd},
		"the end of a hand-over": {hooks: onWaitEnd, local: true},
		"Handover": {local: true, hooks: func(panics func()) zklock.Hooks {
			return zklock.Hooks{Handover: func(context.Context, zklock.HandoverEvent) { panics() }}
		}},
		"Handover of a kept place": {keys: map[string]string{"keep": "1h"}, hooks: func(panics func()) zklock.Hooks {
			return zklock.Hooks{Handover: func(context.Context, zklock.HandoverEvent) { panics() }}
		}},
		"Release": {hooks: func(panics func()) zklock.Hooks {
			return zklock.Hooks{Release: func(context.Context, zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
				panics()
				return nil, nil
			}}
		}},
		"the end of Release": {hooks: func(panics func()) zklock.Hooks {
			return zklock.Hooks{Release: func(context.Context, zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
				return nil, func(zklock.ReleaseResult) { panics() }
			}}
		}},
		"Inject": {hooks: func(panics func()) zklock.Hooks {
			return zklock.Hooks{Inject: func(context.Context) string { panics(); return "" }}
		}},
		"Label": {hooks: func(panics func()) zklock.Hooks {
			return zklock.Hooks{Label: func(context.Context) string { panics(); return "" }}
		}},
		"Operation of a watch": {hooks: func(panics func()) zklock.Hooks {
			return zklock.Hooks{Operation: func(_ context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
				if e.Kind == "watch" {
					panics()
				}
				return nil, nil
			}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				var armed atomic.Bool
				panicked, fired := 0, 0
				a := connect(t, e.Connector(), c.keys, zklock.WithHooks(c.hooks(func() {
					if armed.CompareAndSwap(true, false) {
						fired++
						end()
					}
				})))
				b := connect(t, e.Connector(), nil)
				acquire(t.Context(), a)
				if c.keys != nil {
					for range 20 { // so that the client keeps the place
						acquire(t.Context(), a)
					}
				}
				armed.Store(true)
				ended := make(chan any, 3)
				begin := func(f func()) {
					go func() {
						v := any("no") // unless it returns
						defer func() { ended <- v }()
						v = recovered(f)
					}()
					synctest.Wait()
				}
				holder, began := b, 0
				if c.local {
					holder = a
				}
				if c.keys == nil {
					gate := make(chan struct{})
					begin(func() {
						_ = zklock.Do(t.Context(), holds(holder), func(context.Context, *zklock.Lock) error { <-gate; return nil })
					})
					ctx, cancel := context.WithCancel(t.Context())
					if c.third {
						third := connect(t, e.Connector(), nil)
						begin(func() { acquire(ctx, third) })
						began++
					}
					begin(func() { acquire(t.Context(), a) })
					begin(func() { acquire(t.Context(), a) })
					cancel()
					time.Sleep(10 * time.Millisecond)
					close(gate)
					began += 3
				} else {
					begin(func() { acquire(t.Context(), a) })
					began = 1
				}
				for range began {
					select {
					case v := <-ended:
						if v == "no" {
							panicked++
						} else if v != nil {
							t.Errorf("recovered %v", v)
						}
					case <-time.After(30 * time.Second):
						t.Errorf("an acquisition has not returned after 30s")
					}
				}
				armed.Store(false)
				if panicked != fired || always && fired != 1 {
					t.Errorf("%d callers have recovered from %d panics, want 1", panicked, fired)
				}
				synctest.Wait()
				if s := a.Stats(); s.Held != 0 || s.Waiting != 0 || s.Acquiring != 0 {
					t.Errorf("after the panic %d locks are held, %d acquisitions wait and %d are under way, want none", s.Held, s.Waiting, s.Acquiring)
				}
				for who, client := range map[string]*zklock.Client{"the client": a, "another client": b} {
					l, err := of(client).Acquire(t.Context(), zklock.WithWait(10*time.Second))
					if err != nil {
						t.Errorf("after the panic %s: %v", who, err)
						continue
					}
					mustRelease(t, l)
				}
				if n := nodes(e); n != 0 && c.keys == nil {
					t.Errorf("left behind:\n%s", e.Dump())
				}
			})
		})
	}
}

func onWait(panics func()) zklock.Hooks {
	return zklock.Hooks{Wait: func(context.Context, zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
		panics()
		return nil, nil
	}}
}

func onWaitEnd(panics func()) zklock.Hooks {
	return zklock.Hooks{Wait: func(context.Context, zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
		return nil, func(zklock.WaitResult) { panics() }
	}}
}

func onAhead(panics func()) zklock.Hooks {
	return zklock.Hooks{Ahead: func(context.Context, zklock.WaitEvent) { panics() }}
}

// A panic in the Deadlock hook, and one in the Wait hook of a nested acquisition, leave no registered wait.
func TestPanicInAHookOfANestedWait(t *testing.T) {
	for name, hooks := range map[string]func(panics func()) zklock.Hooks{
		"Wait":            onWait,
		"the end of Wait": onWaitEnd,
		"Deadlock": func(panics func()) zklock.Hooks {
			return zklock.Hooks{Deadlock: func(context.Context, zklock.DeadlockEvent) { panics() }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				var once atomic.Bool
				a := connect(t, e.Connector(), nil, zklock.WithHooks(hooks(func() {
					if once.CompareAndSwap(false, true) {
						panic("no")
					}
				})))
				p, q := mustLock(t)(a.Mutex("p").Acquire(t.Context())), mustLock(t)(a.Mutex("q").Acquire(t.Context()))
				ended := make(chan any, 2)
				nest := func(held *zklock.Lock, wants string) {
					ctx, cancel := held.Context(t.Context())
					defer cancel()
					defer func() { _ = held.Release(t.Context()) }()
					l, err := a.Mutex(wants).Acquire(ctx, zklock.WithWait(time.Minute))
					switch {
					case err == nil:
						_ = l.Release(t.Context())
					case !errors.Is(err, zklock.ErrDeadlock):
						t.Errorf("%v", err)
					}
				}
				go func() { ended <- recovered(func() { nest(p, "q") }) }()
				time.Sleep(time.Second)
				go func() { ended <- recovered(func() { nest(q, "p") }) }()
				got := []any{<-ended, <-ended}
				if got[0] != "no" && got[1] != "no" {
					t.Errorf("recovered %v, want one panic", got)
				}
				time.Sleep(10 * time.Second)
				if n := registered(e); n != 0 || nodes(e) != 0 {
					t.Errorf("%d waits are registered, want none, and the nodes are\n%s", n, e.Dump())
				}
			})
		})
	}
}
