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

	before := p.Counts()
	time.Sleep(20 * time.Second)
	d := p.Counts().Sub(before)
	t.Logf("in 20s: %v", d)
	writes := 0
	for op, n := range d.Requests {
		if !slices.Contains([]string{"ping", "sync", "getData", "getChildren", "getChildren2", "exists"}, op) {
			writes += n
		}
	}
	if writes < 2 || writes > 10 { // one in 5.4s to 6s, each
		t.Errorf("%d writes in 20s, want about 7, of the holder and the first in line", writes)
	}
	if n := d.Requests["sync"]; n < clients*5 {
		t.Errorf("%d Syncs in 20s, want 5 of each session at least", n)
	}
	release(t, held)
	release(t, next.must(t))
}
