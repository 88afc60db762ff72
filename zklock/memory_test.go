//go:build !race

package zklock_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// What locks and waiters cost in memory. The ensemble keeps nothing, so what is
// measured is the library's, without what a driver keeps for a watch; and the
// race detector, which keeps books of its own, has no part in it.
const (
	maxHeld   = 1536 // bytes a held lock
	maxWaiter = 1024 // bytes a local waiter, beside the goroutine that waits

	freshStack = 2048 // of a goroutine that has done nothing yet
)

// crowdSize is how many locks or waiters there are. ZKLOCK_NAMES makes there be
// more.
func crowdSize(t *testing.T) int64 {
	n := int64(10_000)
	if s := os.Getenv("ZKLOCK_NAMES"); s != "" {
		var err error
		if n, err = strconv.ParseInt(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// usage is memory on the heap and of stacks.
type usage struct{ heap, stack int64 }

func (b usage) minus(c usage) usage { return usage{b.heap - c.heap, b.stack - c.stack} }

// of is a number's share.
func (b usage) of(n int64) usage { return usage{b.heap / n, b.stack / n} }

func (b usage) sum() int64 { return b.heap + b.stack }

// memory is what the heap and the stacks take once garbage is gone.
func memory() usage {
	var m runtime.MemStats
	for range 3 { // what a pool keeps goes with the second; finalizers need one more
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return usage{int64(m.HeapAlloc), int64(m.StackInuse)}
}

// TestHeldLocksMemory holds many names on two sessions, each with its watch, and
// does it again: what is not given back shows in the second figure.
func TestHeldLocksMemory(t *testing.T) {
	many := crowdSize(t)
	synctest.Test(t, func(t *testing.T) {
		c, e := forgetfulClient(t)
		names := make([]string, many)
		locks := make([]*zklock.Lock, many)
		ctx := context.Background()
		model := watchesAlone(many)
		var each, left []usage
		for round := range 3 {
			for i := range names { // new ones each time: nothing of a name is to stay
				names[i] = "orders/" + strconv.Itoa(round) + "/" + strconv.Itoa(i)
			}
			before, watched := memory(), e.asked()
			for i, name := range names {
				l, err := c.Mutex(name).Acquire(ctx)
				if err != nil {
					t.Fatal(err)
				}
				locks[i] = l
			}
			time.Sleep(5 * time.Second) // of the bubble's: the watches are armed
			synctest.Wait()
			if n := e.sessions.Load(); n != 2 {
				t.Errorf("%d sessions, want the locks on two", n)
			}
			if n := int64(e.asked() - watched); n != many {
				t.Errorf("round %d: %d watches, want one for each of %d locks", round, n, many)
			}
			held := memory().minus(before).minus(model)
			for i, l := range locks {
				if err := l.Release(ctx); err != nil {
					t.Fatal(err)
				}
				locks[i] = nil
			}
			time.Sleep(time.Minute) // idle names are forgotten
			synctest.Wait()
			each, left = append(each, held.of(many)), append(left, memory().minus(before).of(many))
		}
		runtime.KeepAlive(names)
		t.Logf("bytes a held lock in three rounds: %+v; left after its release: %+v", each, left)
		check(t, "a held lock", each, left, maxHeld)
	})
}

// watchesAlone is what the ensemble keeps for as many watches.
func watchesAlone(many int64) usage {
	e := newForgetful()
	before := memory()
	for i := range many {
		e.watch("/" + strconv.FormatInt(i, 10))
	}
	took := memory().minus(before)
	runtime.KeepAlive(e)
	return took
}

// TestWaitersMemory has many goroutines wait for one name that a goroutine of
// the same process holds. The goroutine and its stack are the caller's, so they
// do not count as the library's: what as many goroutines take that wait on a
// channel is subtracted on the heap. A stack has one of a few sizes, and that of
// a goroutine which has done anything at all is larger than a fresh one's: the
// library must not need more than the second size.
func TestWaitersMemory(t *testing.T) {
	many := crowdSize(t)
	synctest.Test(t, func(t *testing.T) {
		c, _ := forgetfulClient(t)
		m := c.Mutex("orders")
		throng(many, func(ctx context.Context) { <-ctx.Done() }) // the runtime keeps the goroutines
		idle := throng(many, func(ctx context.Context) { <-ctx.Done() })
		var each, left []usage
		var stacks []int64
		for range 3 {
			before := memory()
			l, err := m.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			waiting := throng(many, func(ctx context.Context) {
				if _, err := m.Acquire(ctx); err == nil {
					t.Error("acquired what is held")
				}
			})
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			each, left = append(each, waiting.minus(idle).of(many)), append(left, memory().minus(before).of(many))
			if all := waiting.of(many).stack; all > 2*freshStack*11/10 {
				t.Errorf("a waiter's stack has %d bytes, want at most %d", all, 2*freshStack)
			}
			stacks, each[len(each)-1].stack = append(stacks, waiting.of(many).stack), 0
		}
		t.Logf("bytes a waiter in three rounds: %+v beside its goroutine's %+v, whose stack has %d while it waits; left after it: %+v", each, idle.of(many), stacks, left)
		check(t, "a waiter", each, left, maxWaiter)
	})
}

// throng is how much memory many goroutines take that are in wait, which returns
// when its context ends.
func throng(many int64, wait func(context.Context)) usage {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	before := memory()
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() { wait(ctx) })
	}
	synctest.Wait()
	took := memory().minus(before)
	cancel()
	wg.Wait()
	synctest.Wait()
	return took
}

// check holds the rounds' figures to a limit and to each other.
func check(t *testing.T, what string, each, left []usage, limit int64) {
	t.Helper()
	for i := range each {
		// The first round fills pools and maps that never shrink: it may take a
		// little more, once.
		if most := limit + limit/8*int64(max(0, 1-i)); each[i].sum() > most {
			t.Errorf("round %d: %s takes %+v bytes, want at most %d", i, what, each[i], most)
		}
		if i > 0 && (each[i].sum() > each[0].sum()*11/10 || left[i].heap > limit/20) {
			t.Errorf("round %d: %s takes %+v bytes after %+v at first, and %+v stay: it is not given back", i, what, each[i], each[0], left[i])
		}
	}
}
