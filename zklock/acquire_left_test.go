package zklock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A reader leaves before its create is sent, and a writer comes next. The writer does not go on with
// that create: readers of other processes would not wait for such a node.
func TestWriterTakesUpNoReadersCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(50 * time.Millisecond))
		c := connect(t, e.Connector(), nil)
		for _, name := range []string{"m", "x", "y"} {
			mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context())))
		}
		x := acquiring(t, c.Mutex("x"), t.Context())
		synctest.Wait()
		y := acquiring(t, c.Mutex("y"), t.Context())
		synctest.Wait() // two transactions are under way, so the next create is not sent yet
		leave := waiter(t, c.RWMutex("m").Reader())
		writer := acquiring(t, c.Mutex("m"), t.Context())
		synctest.Wait()
		leave()
		l := <-writer
		excludesReaders(t, e, l)
		for _, l := range []*zklock.Lock{l, <-x, <-y} {
			mustRelease(t, l)
		}
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes left", n)
		}
	})
}

// A writer leaves while its create is under way, which is refused, because the znode of the name is gone. A
// reader that waited at that moment leaves during the next create, and a writer comes next.
func TestCreateIsRepeatedForTheSameMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(50 * time.Millisecond))
		c := connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(c.Mutex("m").Acquire(t.Context())))
		if err := memcontrol.Of(e).Delete("/zklock/m"); err != nil {
			t.Fatal(err)
		}
		first := waiter(t, c.Mutex("m"))
		reader := waiter(t, c.RWMutex("m").Reader())
		first()
		writer := acquiring(t, c.Mutex("m"), t.Context())
		time.Sleep(150 * time.Millisecond) // the first create is refused, and the second one is under way
		reader()
		l := <-writer
		excludesReaders(t, e, l)
		mustRelease(t, l)
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes left", n)
		}
	})
}

// A caller that wants to be a reader of one name and a writer of another leaves during its create, and its place goes
// to the next one. The client describes that in the nodes. The writer's node stays a writer's.
func TestWritersNodeOfSeveralStaysAWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(50 * time.Millisecond))
		c := connect(t, e.Connector(), nil)
		all := zklock.All(c.RWMutex("a").Reader(), c.Mutex("m"))
		mustRelease(t, mustLock(t)(all.Acquire(t.Context())))
		leave := waiter(t, all)
		next := acquiring(t, all, t.Context())
		synctest.Wait()
		leave()
		l := <-next
		time.Sleep(time.Minute)
		excludesReaders(t, e, l)
		mustRelease(t, l)
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes left", n)
		}
	})
}

// A caller that waits to be a reader of one name and a writer of another leaves. The next one has its place, and does
// not begin at the end of the queue.
func TestPlaceOfAReaderAndAWriterIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		all := zklock.All(c.RWMutex("a").Reader(), c.Mutex("m"))
		held := mustLock(t)(d.Mutex("m").Acquire(t.Context(), zklock.WithoutHandover()))
		leave := waiter(t, all)
		next := acquiring(t, all, t.Context())
		synctest.Wait()
		behind := acquiring(t, connect(t, e.Connector(), nil).Mutex("m"), t.Context())
		synctest.Wait()
		leave()
		synctest.Wait()
		mustRelease(t, held)
		none(t, "the contender that came later", behind)
		mustRelease(t, <-next)
		mustRelease(t, <-behind)
	})
}

// waiter acquires something until leave is called.
func waiter(t *testing.T, a zklock.Acquirer) (leave func()) {
	t.Helper()
	return waiterWith(t, a)
}

func waiterWith(t *testing.T, a zklock.Acquirer, opts ...zklock.AcquireOption) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := a.Acquire(ctx, opts...)
		failed <- err
	}()
	synctest.Wait()
	return func() {
		t.Helper()
		cancel()
		if err := <-failed; !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("%s: %v, want ErrNotAcquired", a.Name(), err)
		}
	}
}

// excludesReaders checks that a reader of another process does not get the lock that a writer has.
func excludesReaders(t *testing.T, e *memdriver.Ensemble, l *zklock.Lock) {
	t.Helper()
	other, err := connect(t, e.Connector(), nil).RWMutex("m").Reader().TryAcquire(t.Context())
	if err == nil {
		t.Errorf("a reader has %v while a writer has %v", other.Token(), l.Token())
		mustRelease(t, other)
	}
}

// Callers of a client that finds no root have less time each than it takes to make it. It is made nevertheless, and the
// lock is granted.
func TestRootIsMadeAlthoughItsCallersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 10 * time.Millisecond
		e := memdriver.New(memdriver.WithLatency(trip / 2))
		c := connect(t, e.Connector(), nil)
		var granted atomic.Int32
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				time.Sleep(time.Duration(i) * trip / 20)
				for began := time.Now(); time.Since(began) < time.Second; {
					if l, err := c.Mutex("m").Acquire(t.Context(), zklock.WithWait(trip)); err == nil {
						granted.Add(1)
						time.Sleep(trip / 2)
						mustRelease(t, l)
					}
				}
			})
		}
		callers.Wait()
		if granted.Load() == 0 {
			t.Error("nothing was granted within a second")
		}
	})
}
