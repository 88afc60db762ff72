package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// TestNestedAcquisitionCostsNoMore compares acquisitions whose context carries a lock with those of a context that
// carries none, within deadlock_timeout: their requests, events and bytes, of a free lock and after a wait.
func TestNestedAcquisitionCostsNoMore(t *testing.T) {
	t.Parallel()
	zk := calm(t)
	hooks, waiting := waits()
	never := slow("deadlock_timeout", "1h")
	c, other := calmDialWith(t, zk.Server(0), never, zklock.WithHooks(hooks)), calmDialWith(t, zk.Server(0), never)
	ctx, cancel := acquire(t, c.Mutex("carried")).Context(within(t))
	t.Cleanup(cancel)
	for what, f := range map[string]func(context.Context){
		"a free lock": func(ctx context.Context) {
			release(t, try(t, ctx, c.Mutex("free")).must(t))
		},
		"a lock that another client has": func(ctx context.Context) {
			held := acquire(t, other.Mutex("busy"))
			before := c.proxy.Counts()
			p := try(t, ctx, c.Mutex("busy"))
			receive(t, "the wait", waiting)
			eventually(t, "it watches the holder's node and, a moment later, its own", func() bool { return c.since(before).requests["getData"] >= 2 })
			release(t, held)
			release(t, p.must(t))
		},
	} {
		costOf := func(ctx context.Context) string {
			before, others := c.proxy.Counts(), other.proxy.Counts()
			f(ctx)
			return fmt.Sprintf("%+v and, of the other client, %+v", counts(c.proxy.Counts().Sub(before)), counts(other.proxy.Counts().Sub(others)))
		}
		f(ctx) // the first acquisition of a name reads its znode
		f(ctx)
		nested := costOf(ctx)
		if alone := costOf(zklock.Detach(ctx)); nested != alone {
			t.Errorf("%s costs\n%s\nand without a lock\n%s", what, nested, alone)
		}
		t.Logf("%s: %s", what, nested)
	}
}

// counts is like proxy.Counts, and its text has all of them.
type counts proxy.Counts

// TestCrowdOfWhichFewAreNested: a thousand goroutines of four clients wait for one name, ten of them with a lock,
// and the holder of the name waits for one of these locks. One wait ends, and all others are granted the name. The
// lists of the register are bounded by the waits that are registered.
func TestCrowdOfWhichFewAreNested(t *testing.T) {
	t.Parallel()
	const clients, each, nested = 4, 250, 10
	zk := calm(t)
	settings := slow("max_waiters", "0")
	holder := calmDialWith(t, zk.Server(0), settings)
	top := acquire(t, holder.Mutex("top"))
	all := []counted{holder}
	var victims, granted atomic.Int32
	var crowd sync.WaitGroup
	ends := func(l *zklock.Lock, err error) {
		switch {
		case errors.Is(err, zklock.ErrDeadlock):
			victims.Add(1)
		case err != nil:
			t.Error(err)
		default:
			granted.Add(1)
			if err := l.Release(within(t)); err != nil {
				t.Error(err)
			}
		}
	}
	began := time.Now()
	for i := range clients {
		c := calmDialWith(t, zk.Server(0), settings)
		all = append(all, c)
		for j := range each {
			ctx, own := within(t), (*zklock.Lock)(nil)
			if k := i + j*clients; k < nested {
				own = acquire(t, c.Mutex(fmt.Sprint("own", k)))
				var cancel context.CancelFunc
				ctx, cancel = own.Context(ctx)
				t.Cleanup(cancel)
			}
			crowd.Go(func() {
				l, err := c.Mutex("top").Acquire(ctx)
				ends(l, err)
				if own != nil {
					if err := own.Release(within(t)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	ctx, cancel := top.Context(within(t))
	t.Cleanup(cancel)
	ends(holder.Mutex("own3").Acquire(ctx))
	if n := victims.Load(); n != 1 {
		t.Errorf("%d waits have ended because of a deadlock when the holder's has ended, want 1", n)
	}
	lists := 0
	for _, c := range all {
		lists += c.proxy.Counts().Requests["getChildren2"]
	}
	// Each client lists the queue of the name once, or twice if it was refused; the rest are looks.
	rounds := int(time.Since(began)/(5*time.Second)) + 1
	if most := 2*len(all) + nested + 1 + 1 + rounds*len(all); lists > most {
		t.Errorf("%d lists, want at most %d", lists, most)
	}
	t.Logf("%d lists", lists)
	release(t, top)
	crowd.Wait()
	if v, g := victims.Load(), granted.Load(); v != 1 || g != clients*each {
		t.Errorf("%d waits have ended because of a deadlock, and %d were granted, want 1 and %d", v, g, clients*each)
	}
}
