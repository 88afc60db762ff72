package zklock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A goroutine that has met another contender, and lost its session, asks again. What it has met may have
// gone by then, so a try behind it waits for the new answer.
func TestTryBehindAWaiterThatAsksAgain(t *testing.T) {
	const latency = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(latency))
		other := connect(t, e.Connector(), nil)
		held := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		var expired atomic.Bool
		again := make(chan struct{}) // closed when the waiter asks on its second session
		c := connect(t, e.Connector(), nil, zklock.WithHooks(zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			if ev.Kind == "enqueue" && expired.Swap(false) {
				close(again)
			}
			return ctx, nil
		}}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _, _ = c.Mutex("x").Acquire(ctx) }()
		time.Sleep(20 * latency)
		if _, err := c.Mutex("x").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Fatalf("behind a waiter: %v, want ErrNotAcquired", err)
		}
		expired.Store(true)
		e.Expire(e.Sessions()[1])
		mustRelease(t, held)
		<-again
		tried := make(chan error, 1)
		go func() {
			_, err := c.Mutex("x").TryAcquire(t.Context())
			tried <- err
		}()
		synctest.Wait()
		select {
		case err := <-tried:
			t.Fatalf("while the waiter ahead asks again: %v, want no answer yet", err)
		default:
		}
		cancel()
		<-tried
	})
}
