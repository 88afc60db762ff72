package zklock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestTryReaderAfterNewestReaderHoldLeft: of two readers' holds the newer one is released.
// A reader's try then gets in, and does not panic.
func TestTryReaderAfterNewestReaderHoldLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		r := c.RWMutex("a").Reader()
		l1, err := r.Acquire(t.Context())
		must(t, l1, err)
		time.Sleep(150 * time.Millisecond)
		l2, err := r.Acquire(t.Context())
		must(t, l2, err)
		if err := l2.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("TryAcquire panicked: %v", p)
				}
			}()
			l3, err := r.TryAcquire(t.Context())
			if err != nil {
				t.Errorf("TryAcquire of a reader, while a reader holds: %v", err)
			} else {
				l3.Release(t.Context())
			}
		}()
	})
}

func TestReaderWaitsForOlderReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		r := c.RWMutex("a").Reader()
		l1, err := r.Acquire(t.Context())
		must(t, l1, err)
		time.Sleep(150 * time.Millisecond)
		l2, err := r.Acquire(t.Context())
		must(t, l2, err)
		l2.Release(t.Context())
		l3, err := r.Acquire(t.Context(), zklock.WithWait(time.Second))
		if err != nil {
			t.Fatalf("a reader, while a reader holds: %v", err)
		}
		l3.Release(t.Context())
		l1.Release(t.Context())
	})
}

// TestConcurrentReaderTries: concurrent tries of readers on a free lock all get in.
func TestConcurrentReaderTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		c := connect(t, e.Connector(), nil)
		r := c.RWMutex("a").Reader()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				l, err := r.TryAcquire(t.Context())
				if err != nil {
					t.Errorf("a reader's try, without any writer: %v", err)
					return
				}
				l.Release(t.Context())
			})
		}
		wg.Wait()
	})
}

// Readers hold together and writers alone, in the order of the queue. A reader passes a
// queued writer only if it joins a hold of its own process, until handover_time has
// passed since the node was granted. A local writer that waits stops such readers too.
func TestReadersPassNoQueuedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		reader := func(c *zklock.Client) zklock.Acquirer { return c.RWMutex("x").Reader() }
		first := mustLock(t)(reader(a).Acquire(t.Context()))
		second := mustLock(t)(reader(b).Acquire(t.Context()))
		writer := acquiring(t, c.Mutex("x"), t.Context())
		late := acquiring(t, reader(c), t.Context()) // behind its own process's writer
		joined := mustLock(t)(reader(a).Acquire(t.Context(), zklock.WithWait(0)))
		if joined.Token() != first.Token() || second.Token().Compare(first.Token()) <= 0 {
			t.Errorf("tokens: first %v, joined %v, second %v; want the first two equal and the third later", first.Token(), joined.Token(), second.Token())
		}
		time.Sleep(100 * time.Millisecond)
		after := acquiring(t, reader(a), t.Context())
		none(t, "a local reader, after handover_time,", after)
		if _, err := reader(b).TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("a reader's try, after handover_time: %v, want ErrNotAcquired", err)
		}
		for _, l := range []*zklock.Lock{joined, second, first} {
			none(t, "the writer, while readers hold,", writer)
			none(t, "a later reader, before the writer,", late)
			mustRelease(t, l)
		}
		w := <-writer
		none(t, "a reader, while the writer holds,", late)
		none(t, "a local reader, while the writer holds,", after)
		mustRelease(t, w)
		// The local reader gets the writer's node. Its name says writer, so the other
		// reader waits for it.
		for _, ch := range []chan *zklock.Lock{late, after} {
			l := <-ch
			if l.Token().Compare(w.Token()) <= 0 {
				t.Errorf("a reader's token %v after a writer's %v", l.Token(), w.Token())
			}
			mustRelease(t, l)
		}
	})
}

func TestLocalWriterStopsLocalReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		first := mustLock(t)(c.RWMutex("x").Reader().Acquire(t.Context()))
		writer := acquiring(t, c.Mutex("x"), t.Context())
		if _, err := c.RWMutex("x").Reader().TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("a reader's try, behind a local writer: %v, want ErrNotAcquired", err)
		}
		reader := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		none(t, "a reader, before a local writer,", reader)
		mustRelease(t, first)
		w := <-writer
		if w.Token().Zxid == first.Token().Zxid {
			t.Error("a reader's node was handed to a writer")
		}
		none(t, "a reader, while a writer holds,", reader)
		mustRelease(t, w)
		r := <-reader
		if r.Token().Zxid != w.Token().Zxid || r.Token().Turn != w.Token().Turn+1 {
			t.Errorf("a reader's token %v after a writer's %v, want the next turn of the same zxid: the place was not handed over", r.Token(), w.Token())
		}
		mustRelease(t, r)
	})
}

// trying acquires in the background. Unlike acquiring, it lets the test end without
// getting the lock.
func trying(t *testing.T, a zklock.Acquirer) chan *zklock.Lock {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	got := make(chan *zklock.Lock, 1)
	go func() {
		if l, err := a.Acquire(ctx); err == nil {
			got <- l
		}
	}()
	synctest.Wait()
	return got
}

// A writer that waits behind readers of its own process has a node in ZooKeeper's queue.
// So readers of other processes that come later wait behind it.
func TestRemoteReadersDoNotPassALocalWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		reader := mustLock(t)(c.RWMutex("x").Reader().Acquire(t.Context()))
		writer := acquiring(t, c.Mutex("x"), t.Context())
		time.Sleep(time.Minute)
		late := trying(t, d.RWMutex("x").Reader())
		none(t, "a reader of another process, before a writer that has waited for a minute", late)
		mustRelease(t, reader)
		mustRelease(t, soon(t, "the writer", writer))
		mustRelease(t, <-late)
	})
}

// While a writer of this process waits, new readers do not join the readers that hold.
// That is so whether the writer waits in the local queue or has its own place.
func TestWaitingWriterStopsReadersFromJoining(t *testing.T) {
	for how, writer := range map[string]func(*zklock.Client) (zklock.Acquirer, []zklock.AcquireOption){
		"plain": func(c *zklock.Client) (zklock.Acquirer, []zklock.AcquireOption) { return c.Mutex("x"), nil },
		"without hand-over": func(c *zklock.Client) (zklock.Acquirer, []zklock.AcquireOption) {
			return c.Mutex("x"), []zklock.AcquireOption{zklock.WithoutHandover()}
		},
		"all": func(c *zklock.Client) (zklock.Acquirer, []zklock.AcquireOption) {
			return zklock.All(c.Mutex("x"), c.Mutex("y")), nil
		},
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, memdriver.New().Connector(), map[string]string{"handover_time": "10s"})
				reader := c.RWMutex("x").Reader()
				first := mustLock(t)(reader.Acquire(t.Context()))
				mustRelease(t, soon(t, "a reader while another reader holds", acquiring(t, reader, t.Context())))
				what, opts := writer(c)
				waiting := acquiring(t, what, t.Context(), opts...)
				late := trying(t, reader)
				none(t, "a reader that came after a writer", late)
				mustRelease(t, first)
				mustRelease(t, soon(t, "the writer", waiting))
				mustRelease(t, soon(t, "the reader", late))
				// The writer has left no trace: readers join again.
				one := mustLock(t)(reader.Acquire(t.Context()))
				two := mustLock(t)(reader.Acquire(t.Context()))
				if one.Token() != two.Token() {
					t.Error("two readers have separate places, although no writer waits any more")
				}
				mustRelease(t, one)
				mustRelease(t, two)
			})
		})
	}
}
