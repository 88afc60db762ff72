package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// These tests show that a kind of lock is a row and a type: updater_row_test.go and updater_test.go add
// one, an update lock, and nothing else in the package knows it. The two files say what they have to
// contain. It excludes itself and writers, and is held together with readers.

// kindsOfLock makes one lock of each of the kinds that share a queue.
var kindsOfLock = []struct {
	name string
	of   func(c *zklock.Client, name string) zklock.Acquirer
}{
	{"writer", func(c *zklock.Client, name string) zklock.Acquirer { return c.Mutex(name) }},
	{"reader", func(c *zklock.Client, name string) zklock.Acquirer { return c.RWMutex(name).Reader() }},
	{"updater", func(c *zklock.Client, name string) zklock.Acquirer { return zklock.NewUpdater(c, name) }},
}

// holdTogether reports whether two kinds may hold at the same time.
func holdTogether(a, b string) bool {
	return a == "reader" && b != "writer" || b == "reader" && a != "writer"
}

// Each kind is held together with each other kind if it may be, and is refused if not. The holder and
// the one that tries are two processes, or one.
func TestNewKindExcludes(t *testing.T) {
	for _, holder := range kindsOfLock {
		for _, asker := range kindsOfLock {
			for _, processes := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s/%s/%d", holder.name, asker.name, processes), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						e := memdriver.New()
						a := connect(t, e.Connector(), nil)
						b := a
						if processes == 2 {
							b = connect(t, e.Connector(), nil)
						}
						held := mustLock(t)(holder.of(a, "x").Acquire(t.Context()))
						lock, err := asker.of(b, "x").TryAcquire(t.Context())
						if holdTogether(holder.name, asker.name) {
							if err != nil {
								t.Fatalf("a try while a %s holds: %v", holder.name, err)
							}
							mustRelease(t, lock)
						} else if !errors.Is(err, zklock.ErrNotAcquired) {
							t.Fatalf("a try while a %s holds returned %v, want ErrNotAcquired", holder.name, err)
						}
						if !holdTogether(holder.name, asker.name) {
							got := acquiring(t, asker.of(b, "x"), t.Context())
							select {
							case <-got:
								t.Fatalf("a %s and a %s hold at the same time", asker.name, holder.name)
							default:
							}
							mustRelease(t, held)
							held = <-got
						}
						mustRelease(t, held)
					})
				})
			}
		}
	}
}

// Goroutines of three processes acquire one name as all kinds, in any order. No two hold together that
// exclude each other, each of them gets its turn, and nothing is left.
func TestNewKindAmongManyContenders(t *testing.T) {
	const goroutines, times = 5, 8
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var mu sync.Mutex
		held, with := map[string]int{}, map[[2]string]int{}
		var all sync.WaitGroup
		for range 3 {
			c := connect(t, e.Connector(), nil)
			for range goroutines {
				all.Go(func() {
					for range times {
						k := kindsOfLock[rand.IntN(len(kindsOfLock))]
						lock, err := k.of(c, "x").Acquire(t.Context())
						if err != nil {
							t.Errorf("%s: %v", k.name, err)
							return
						}
						mu.Lock()
						for other, n := range held {
							if n > 0 && !holdTogether(k.name, other) {
								t.Errorf("a %s and a %s hold at the same time", k.name, other)
							} else if n > 0 {
								with[[2]string{k.name, other}]++
							}
						}
						held[k.name]++
						mu.Unlock()
						time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
						mu.Lock()
						held[k.name]--
						mu.Unlock()
						if err := lock.Release(t.Context()); err != nil {
							t.Errorf("%s: %v", k.name, err)
						}
					}
				})
			}
		}
		all.Wait()
		synctest.Wait()
		if with[[2]string{"updater", "reader"}]+with[[2]string{"reader", "updater"}] == 0 {
			t.Error("no updater has held together with a reader")
		}
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes are left:\n%s", n, e.Dump())
		}
	})
}

// What else a kind may do follows from its row: which dialects have it, what it may be combined with,
// and how it is shown.
func TestNewKindDoesWhatItsRowSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		ctx := t.Context()
		lock := mustLock(t)(zklock.NewUpdater(c, "x").Acquire(ctx))
		if s := lock.Mode().String(); s != "update" {
			t.Errorf("it is held as %q", s)
		}
		q, err := c.Contenders(ctx, "x")
		if err != nil || len(q) != 1 || !q[0].Held || q[0].Mode != lock.Mode() || !strings.Contains(q[0].Node, "__UPDT__") {
			t.Errorf("the queue is %+v, %v", q, err)
		}
		if err := lock.Downgrade(ctx); !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("Downgrade: %v, want ErrConflict", err)
		}
		inner, cancel := lock.Context(ctx)
		defer cancel()
		joined := mustLock(t)(c.RWMutex("x").Reader().Acquire(inner, zklock.Reenter()))
		mustRelease(t, joined)
		if _, err := c.Mutex("x").Acquire(inner, zklock.Reenter()); !errors.Is(err, zklock.ErrDeadlock) {
			t.Errorf("a writer inside of an updater: %v, want ErrDeadlock", err)
		}
		if _, err := c.Semaphore("x", 1).Acquire(ctx); !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("a semaphore of the same name: %v, want ErrConflict", err)
		}
		mustRelease(t, lock)

		both := mustLock(t)(zklock.All(c.RWMutex("x").Reader(), zklock.NewUpdater(c, "x"), c.RWMutex("y").Reader()).Acquire(ctx))
		var modes []string
		for _, m := range both.Modes() {
			modes = append(modes, m.String())
		}
		if want := []string{"update", "shared"}; !slices.Equal(modes, want) {
			t.Errorf("All holds %v, want %v", modes, want)
		}
		mustRelease(t, both)

		kazoo := connect(t, e.Connector(), map[string]string{"dialect": "kazoo"})
		if _, err := zklock.NewUpdater(kazoo, "k").Acquire(ctx); !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("in another dialect: %v, want ErrConflict", err)
		}
		if _, err := (*zklock.Updater)(nil).Acquire(context.Background()); !errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("nil: %v, want ErrMisuse", err)
		}
	})
}
