package zklock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A caller leaves at the end of WithWait. It would have stayed for its work, so those that wait for longer are not taken
// to be about to leave: the lock goes to the first of them.
func TestEndOfWithWaitChangesNoOrder(t *testing.T) {
	for _, opts := range [][]zklock.AcquireOption{nil, {zklock.WithoutHandover()}} {
		synctest.Test(t, func(t *testing.T) {
			m := connect(t, memdriver.New().Connector(), nil).Mutex("m")
			held := mustLock(t)(m.Acquire(t.Context(), opts...))
			next := acquiring(t, m, t.Context(), opts...)
			synctest.Wait()
			first := acquiring(t, m, t.Context(), opts...)
			time.AfterFunc(950*time.Millisecond, func() { mustRelease(t, held) })
			if _, err := m.Acquire(t.Context(), append(opts, zklock.WithWait(time.Second))...); !errors.Is(err, zklock.ErrNotAcquired) {
				t.Fatal(err)
			}
			held = soon(t, "the next caller", next)
			second := acquiring(t, m, t.Context(), opts...)
			time.Sleep(100 * time.Millisecond) // it works for much less than the other waited
			mustRelease(t, held)
			got := soon(t, "the caller that came first", first)
			none(t, "the caller that came later", second)
			mustRelease(t, got)
			mustRelease(t, soon(t, "the caller that came later", second))
		})
	}
}

// The first of two callers leaves, and then the second, while the agent looks at the queue: the ensemble is well, and
// another client has the lock. That does not count as an outage, however long the session has had nothing to ask.
func TestWaitThatEndsWhileAnAgentLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("m").Acquire(t.Context(), zklock.WithoutHandover()))
		m := connect(t, e.Connector(), nil).Mutex("m")
		far := acquiring(t, connect(t, e.Connector(), nil).Mutex("m"), t.Context())
		synctest.Wait()
		for wait := 100 * time.Millisecond; wait < 4*time.Second; wait += 50 * time.Millisecond {
			time.Sleep(time.Second)
			first := make(chan error)
			go func() {
				_, err := m.Acquire(t.Context(), zklock.WithWait(wait))
				first <- err
			}()
			synctest.Wait()
			_, err := m.Acquire(t.Context(), zklock.WithWait(wait+5*time.Millisecond))
			if !errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrUnavailable) {
				t.Errorf("after %v: %v, want ErrNotAcquired alone", wait, err)
			}
			if err := <-first; !errors.Is(err, zklock.ErrNotAcquired) {
				t.Error(err)
			}
		}
		mustRelease(t, held)
		mustRelease(t, <-far)
	})
}
