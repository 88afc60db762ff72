package zklock_test

import (
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestContenderBehindAnotherIsNotCounted: a contender that has another one ahead, as far as its
// client knows, does not set the parent, since it lists the queue in any case.
func TestContenderBehindAnotherIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		use(t, c.Mutex("x"))
		use(t, c.Semaphore("s", 3))
		want := func(what string, counted bool, f func()) {
			t.Helper()
			ops, lists := 2, 0
			if !counted {
				ops, lists = 1, 1
			}
			if d := cost(e, f); d.Multis != 1 || d.MultiOps != ops || d.Children != lists {
				t.Errorf("%s cost %d operations in %d transactions and %d lists, want %d in one and %d", what, d.MultiOps, d.Multis, d.Children, ops, lists)
			}
		}
		acquire := func(a zklock.Acquirer) (l *zklock.Lock) {
			return mustLock(t)(a.Acquire(t.Context(), zklock.WithoutHandover()))
		}
		var first, second *zklock.Lock
		want("the first permit", true, func() { first = acquire(c.Semaphore("s", 3)) })
		want("the second permit", false, func() { second = acquire(c.Semaphore("s", 3)) })
		mustRelease(t, first)
		mustRelease(t, second)
		want("a lock of a free name", true, func() { first = acquire(c.Mutex("x")) })
		var next chan *zklock.Lock
		want("a waiter behind it", false, func() {
			next = acquiring(t, c.Mutex("x"), t.Context(), zklock.WithoutHandover())
			synctest.Wait()
		})
		mustRelease(t, first)
		mustRelease(t, soon(t, "the waiter", next))
		// The znode's first set is needed: it shows the reaper that the znode is still the same.
		first = acquire(c.Mutex("fresh"))
		mustRelease(t, first)
		all := make(chan *zklock.Lock, 2)
		for range cap(all) {
			go func() { all <- acquire(c.Mutex("fresher")) }()
		}
		for range cap(all) {
			mustRelease(t, <-all)
		}
		if n, err := plain(t, e).Get(t.Context(), "/zklock/fresher"); err != nil || n.Stat.Version < 1 {
			t.Errorf("the znode of a name that two wanted at first has version %d, %v", n.Stat.Version, err)
		}
	})
}

// TestRequeueBehindAnotherIsNotCounted: a place leaves for a new one at the tail, because another
// client waits. The transaction deletes the old node and creates the new one, and no more.
func TestRequeueBehindAnotherIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), map[string]string{"handover_limit": "1"}), connect(t, e.Connector(), nil)
		first := mustLock(t)(b.Mutex("x").Acquire(t.Context()))
		mine := acquiring(t, a.Mutex("x"), t.Context())
		synctest.Wait()
		theirs := acquiring(t, b.Mutex("x"), t.Context(), zklock.WithoutHandover())
		synctest.Wait()
		mustRelease(t, first)
		held := soon(t, "our goroutine", mine)
		second := acquiring(t, a.Mutex("x"), t.Context())
		synctest.Wait()
		third := acquiring(t, a.Mutex("x"), t.Context())
		synctest.Wait()
		mustRelease(t, held) // handed over, which reaches the limit
		held = soon(t, "our second goroutine", second)
		if d := cost(e, func() {
			mustRelease(t, held)
			synctest.Wait()
		}); d.Multis != 1 || d.MultiOps != 2 || d.Children != 1 {
			t.Errorf("to queue again cost %+v, want one transaction of two operations, and a list", d)
		}
		l := soon(t, "the other client", theirs)
		none(t, "our third goroutine, behind the other client,", third)
		mustRelease(t, l)
		mustRelease(t, soon(t, "our third goroutine", third))
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes are left", n)
		}
	})
}
