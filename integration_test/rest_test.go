//go:build !race

package integration_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// TestThousandWaitersSendNoWrites: a thousand sessions want one name. While they wait, only
// the holder and the first in line write to the server.
func TestThousandWaitersSendNoWrites(t *testing.T) {
	long.Parallel(t)
	long.Test(t, "a thousand sessions are watched for 35 s")
	const clients = 1000
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{MaxSessionTimeout: 30 * time.Second})
	p, err := proxy.NewCounting(e.Hosts())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	hooks, waiting := waits()
	open := func(timeout string) *zklock.Client {
		return dial(t, p.Addr(), quick("pool_max_sessions", "1", "session_timeout", timeout), zklock.WithHooks(hooks))
	}
	// A busy machine may stop this process for seconds. The holder and the first in line must not
	// lose their sessions then.
	const steady = "30s"
	holder, first := open(steady), open(steady)
	held := acquire(t, holder.Mutex("x"))
	next := try(t, within(t), first.Mutex("x"))
	receive(t, "the first in line", waiting)
	ctx, cancel := context.WithCancel(context.Background())
	var waiters sync.WaitGroup
	defer waiters.Wait()
	defer cancel()
	const burst = 50 // a thousand handshakes at once could cost the two their connections
	for i := range clients - 2 {
		if i >= burst {
			receive(t, "a waiter", waiting)
		}
		c := open("10s")
		waiters.Go(func() {
			// On a busy machine, a thousand sessions are not all open within connect_timeout.
			l, err := c.Mutex("x").Acquire(ctx)
			for errors.Is(err, zklock.ErrUnavailable) && ctx.Err() == nil {
				l, err = c.Mutex("x").Acquire(ctx)
			}
			if err == nil {
				_ = l.Release(context.Background())
			}
		})
	}
	for range burst {
		receive(t, "a waiter", waiting)
	}
	time.Sleep(15 * time.Second) // the leases that creations have proven would have been renewed by now

	began, before := time.Now(), p.Counts()
	time.Sleep(20 * time.Second)
	d := p.Counts().Sub(before)
	window := time.Since(began) // longer on a busy machine, and so is the upper limit higher
	t.Logf("in %v: %v", window, d)
	writes := 0
	for op, n := range d.Requests {
		if !slices.Contains([]string{"ping", "sync", "getData", "getChildren", "getChildren2", "exists"}, op) {
			writes += n
		}
	}
	most := 2*int(window/(5400*time.Millisecond)+1) + 2 // one in 5.4s to 6s, each
	if writes < 2 || writes > most {
		t.Errorf("%d writes in %v, want 2 to %d, of the holder and the first in line", writes, window, most)
	}
	if n := d.Requests["sync"]; n < clients*5 {
		t.Errorf("%d Syncs in %v, want 5 of each session at least", n, window)
	}
	release(t, held)
	release(t, next.must(t))
}
