package integration_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// TestEndedWaitLeavesNoNode: in whatever way a wait ends, the contender leaves the queue and
// its node is deleted.
func TestEndedWaitLeavesNoNode(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	hooks, waiting := waits()
	holder, other, c := dial(t, e.Hosts(), quick()), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks)), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks))
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	held := acquire(t, holder.Mutex("x"))
	m := c.Mutex("x")
	// Enough to queue on a busy machine: only then the error is ErrNotAcquired. It is less than half a
	// session timeout: after so long a silence of the servers, the error is ErrUnavailable.
	const limit = 3 * time.Second

	ctx, cancel := context.WithCancelCause(context.Background())
	cancelled := try(t, ctx, m)
	receive(t, "a wait", waiting)
	behind := try(t, within(t), other.Mutex("x"))
	receive(t, "another wait", waiting)
	eventually(t, "all three are in the queue", func() bool { return len(contenders(t, raw, m)) == 3 })
	reason := errors.New("changed my mind")
	cancel(reason)
	if _, err := cancelled.result(t); !errors.Is(err, zklock.ErrNotAcquired) || !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
		t.Errorf("cancelled: %v, want ErrNotAcquired, context.Canceled and the cause", err)
	}

	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	if _, err := m.Acquire(ctx); !errors.Is(err, zklock.ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v, want ErrNotAcquired and context.DeadlineExceeded", err)
	}
	if _, err := m.Acquire(within(t), zklock.WithWait(limit)); !errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("WithWait: %v, want ErrNotAcquired without the context's error", err)
	}
	if _, err := m.TryAcquire(within(t)); !errors.Is(err, zklock.ErrNotAcquired) {
		t.Errorf("TryAcquire: %v, want ErrNotAcquired", err)
	}

	eventually(t, "only the holder and the remaining waiter are in the queue", func() bool {
		return len(contenders(t, raw, m)) == 2
	})
	behind.pending(t)
	release(t, held)
	release(t, behind.must(t))
	eventually(t, "the queue is empty", func() bool { return len(contenders(t, raw, m)) == 0 })
}

// TestFiveThousandEndedWaitsLeaveNothing: they leave no queue nodes on the server, and no
// goroutines in the process.
func TestFiveThousandEndedWaitsLeaveNothing(t *testing.T) {
	const waits, atATime, sessions = 5000, 100, 10
	ensemble.Require(t)
	// Sessions of a minute outlast what the waits do to a busy machine. The shared server has none.
	e := ensemble.Start(t, ensemble.Config{MaxSessionTimeout: time.Minute})
	long := []string{"session_timeout", "1m"}
	holder := dial(t, e.Hosts(), quick(long...))
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	m := holder.Mutex("x")
	held := acquire(t, m)
	before := runtime.NumGoroutine()
	var clients []*zklock.Client // several, so that several nodes exist at the same time
	for range sessions {
		clients = append(clients, dial(t, e.Hosts(), quick(append(long, "pool_max_sessions", "1")...)))
	}
	var wg sync.WaitGroup
	for i := range atATime {
		m := clients[i%sessions].Mutex("x")
		wg.Go(func() {
			for range waits / atATime {
				// The context ends at a random moment: before the enqueue,
				// during it, or while the caller waits.
				ctx, cancel := context.WithTimeout(context.Background(), rand.N(30*time.Millisecond))
				if _, err := m.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) ||
					!errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable) {
					t.Errorf("%v, want the context's error and ErrNotAcquired or ErrUnavailable", err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	eventually(t, "only the holder is in the queue", func() bool { return len(contenders(t, raw, m)) == 1 })
	// A session has a dozen goroutines, and its driver keeps some for requests.
	const perSession = 50
	eventually(t, "the goroutines of the waits have ended", func() bool { return runtime.NumGoroutine() <= before+sessions*perSession })
	t.Logf("%d goroutines before, %d after", before, runtime.NumGoroutine())
	for _, c := range clients {
		if st := c.Stats(); st.Acquiring != 0 || st.Held != 0 || st.Acquired != 0 || st.Failed != waits/sessions {
			t.Errorf("the client's figures after all waits: %+v, want %d failed and nothing held", st, waits/sessions)
		}
		release(t, acquire(t, c.Mutex("y"))) // the client still works
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	const ofHolder = 20 // goroutines that the holder may start, for the watch on its node for example
	eventually(t, "all goroutines of the clients have ended", func() bool { return runtime.NumGoroutine() <= before+ofHolder })
	if held.Err() != nil || !held.Valid() {
		t.Errorf("the lock was lost meanwhile: %v", held.Err())
	}
	release(t, held)
}

// TestSessionExpiresWhileWaiting: the wait goes on with another session, at the tail of the
// queue.
func TestSessionExpiresWhileWaiting(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	p := newProxy(t, e.Hosts())
	hooks, waiting := waits()
	holder, other := dial(t, e.Hosts(), quick()), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks))
	c := dial(t, p.Addr(), quick("connect_timeout", "1m"))
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	m := holder.Mutex("x")
	held := acquire(t, m)
	cut := try(t, within(t), c.Mutex("x"))
	eventually(t, "both are in the queue", func() bool { return len(contenders(t, raw, m)) == 2 })
	node := queue(t, raw, m)[1]

	p.Blackhole(proxy.Both)
	behind := try(t, within(t), other.Mutex("x"))
	receive(t, "the wait of the next client", waiting)
	eventually(t, "the session has expired", func() bool { return !slices.Contains(contenders(t, raw, m), node) })
	cut.pending(t)
	behind.pending(t)
	p.Heal()
	eventually(t, "the client that lost its session is in the queue again", func() bool { return len(contenders(t, raw, m)) == 3 })
	cut.pending(t)
	release(t, held)
	second := behind.must(t)
	cut.pending(t)
	release(t, second)
	last := cut.must(t)
	if last.Token().Compare(second.Token()) <= 0 {
		t.Errorf("token %v after %v, want a greater one", last.Token(), second.Token())
	}
	if st := c.Stats(); st.SessionsLost != 1 || st.SessionsOpened != 2 || st.Lost != 0 {
		t.Errorf("%+v, want one lost session and two opened ones", st)
	}
	release(t, last)
}
