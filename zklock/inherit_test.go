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

// A waiter for the only permit of a semaphore sleeps. It does not ask over and over whether
// the holder was granted the permit.
func TestOnlyPermitIsWaitedForInPeace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		hooks := zklock.Hooks{Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			if (e.Kind == "list" || e.Kind == "watch") && reads.Add(1) == 1000 {
				panic("1000 reads: a waiter asks over and over")
			}
			return ctx, nil
		}}
		c := connect(t, memdriver.New().Connector(), nil, zklock.WithHooks(hooks))
		only := c.Semaphore("s", 1)
		first := mustLock(t)(only.Acquire(t.Context()))
		second := acquiring(t, only, t.Context())
		time.Sleep(time.Second)
		third := acquiring(t, only, t.Context())
		time.Sleep(time.Second)
		mustRelease(t, first)
		l := <-second // marked, since it waited
		time.Sleep(2 * time.Second)
		none(t, "the third", third)
		mustRelease(t, l)
		mustRelease(t, <-third)
	})
}

// A reader that was handed a writer's node lets other readers in, in this process and in
// others, although the node's name says that it is a writer's.
func TestReaderOnAWritersNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		writer := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		heir := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		mustRelease(t, writer)
		reader := <-heir
		if reader.Token().Zxid != writer.Token().Zxid {
			t.Fatal("the node was not handed over")
		}
		time.Sleep(200 * time.Millisecond) // from then on new readers do not share the place
		mustRelease(t, soon(t, "a reader of the process", acquiring(t, c.RWMutex("x").Reader(), t.Context())))
		mustRelease(t, soon(t, "a reader of another process", acquiring(t, d.RWMutex("x").Reader(), t.Context())))
		next := acquiring(t, c.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		none(t, "a writer, while the reader holds,", next)
		mustRelease(t, reader)
		mustRelease(t, <-next)
	})
}

// A reader that takes over the place of a writer that gave up holds as a reader.
func TestReaderInheritsAWritersPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		other := mustLock(t)(d.RWMutex("x").Reader().Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = c.Mutex("x").Acquire(ctx) }()
		synctest.Wait()
		heir := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		cancel()
		mustRelease(t, soon(t, "the reader behind a writer that gave up", heir))
		mustRelease(t, other)
	})
}

// A writer that takes over a reader's place does not get the lock while readers hold it.
func TestWriterInheritsAReadersPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		writer := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		other := acquiring(t, b.RWMutex("x").Reader(), t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = c.RWMutex("x").Reader().Acquire(ctx) }()
		synctest.Wait()
		heir := acquiring(t, c.Mutex("x"), t.Context())
		cancel()
		synctest.Wait()
		mustRelease(t, writer)
		reader := <-other
		time.Sleep(time.Second)
		none(t, "a writer, while a reader holds,", heir)
		mustRelease(t, reader)
		mustRelease(t, <-heir)
	})
}

// When a waiting writer gives up, it does not keep readers out any longer.
func TestReaderBehindAWriterThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		holder := mustLock(t)(c.RWMutex("x").Reader().Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = c.Mutex("x").Acquire(ctx) }()
		synctest.Wait()
		reader := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		time.Sleep(time.Second)
		none(t, "a reader that came after a writer", reader)
		cancel()
		mustRelease(t, soon(t, "the reader behind a writer that gave up", reader))
		mustRelease(t, holder)
	})
}

// When a waiter gives up during a read, the waiters behind it must not conclude that the
// ensemble is unavailable.
func TestWaitThatEndsInAReadIsNotALackOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		writer := mustLock(t)(d.Mutex("x").Acquire(t.Context()))
		var cancels []context.CancelFunc
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			go func() { _, _ = c.RWMutex("x").Reader().Acquire(ctx) }()
			time.Sleep(100 * time.Millisecond)
		}
		last := acquiring(t, c.Mutex("x"), t.Context()) // fails the test on an error
		time.Sleep(15 * time.Second)                    // longer than connect_timeout
		cancels[0]()
		time.Sleep(5 * time.Millisecond)
		cancels[1]() // while it lists, having taken over the place
		time.Sleep(time.Second)
		mustRelease(t, writer)
		mustRelease(t, <-last)
	})
}

// TryAcquire, too, finds out that a writer of another process has become a reader.
func TestReaderTriesNextToADowngradedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		if _, err := d.RWMutex("x").Reader().TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("a try while a writer holds: %v", err)
		}
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, mustLock(t)(d.RWMutex("x").Reader().TryAcquire(t.Context())))
		mustRelease(t, l)
	})
}

// A writer that is downgraded lets the waiting readers of its process in at once.
func TestDowngradeLetsWaitingReadersIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		readers := []chan *zklock.Lock{acquiring(t, c.RWMutex("x").Reader(), t.Context()), acquiring(t, c.RWMutex("x").Reader(), t.Context())}
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, got := range readers {
			mustRelease(t, soon(t, "a reader behind a writer that was downgraded", got))
		}
		mustRelease(t, l)
	})
}

// Within handover_time a writer's node is passed from writers to readers and back without
// a request. It becomes a reader's node only when readers keep it for longer.
func TestWritersNodeGoesToReadersAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		cycles := cost(e, func() {
			for range 10 {
				reader, writer := acquiring(t, c.RWMutex("x").Reader(), t.Context()), acquiring(t, c.Mutex("x"), t.Context())
				mustRelease(t, l)
				r := <-reader
				none(t, "a writer, while a reader holds,", writer)
				mustRelease(t, r)
				l = <-writer
			}
		})
		if cycles.Writes() != 0 || cycles.Children != 0 {
			t.Errorf("20 hand-overs cost %+v, want no write and no list", cycles)
		}

		reader := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = c.Mutex("x").Acquire(ctx) }()
		synctest.Wait()
		mustRelease(t, l)
		r := <-reader
		late := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		none(t, "a reader behind a writer", late)
		gaveUp := time.Now()
		cancel()
		mustRelease(t, soon(t, "a reader behind a writer that gave up", late))
		if waited := time.Since(gaveUp); waited > 0 {
			t.Errorf("a reader waited another %v for a writer that had given up", waited)
		}
		writer := acquiring(t, c.Mutex("x"), t.Context())
		mustRelease(t, r)

		l = <-writer
		reader, writer = acquiring(t, c.RWMutex("x").Reader(), t.Context()), acquiring(t, c.Mutex("x"), t.Context())
		mustRelease(t, l)
		r = <-reader
		time.Sleep(200 * time.Millisecond) // handover_time is over: no later holder gets that node
		remote := acquiring(t, d.RWMutex("x").Reader(), t.Context())
		none(t, "a reader that came after a writer", remote)
		mustRelease(t, r)
		mustRelease(t, soon(t, "the writer", writer))
		mustRelease(t, soon(t, "a reader of another process", remote))
	})
}
