package zklock_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestDowngradeKeepsQueuedWritersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.RWMutex("x").Writer().Acquire(t.Context()))
		token := l.Token()
		reader := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		writer := acquiring(t, b.Mutex("x"), t.Context())
		local := acquiring(t, a.Mutex("x"), t.Context())
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l.Mode() != zklock.Shared || l.Token() != token {
			t.Errorf("after the downgrade the mode is %v and the token %v, want shared and %v as before", l.Mode(), l.Token(), token)
		}
		r := <-reader
		if r.Token().Compare(token) <= 0 {
			t.Errorf("reader's token %v after %v", r.Token(), token)
		}
		none(t, "a queued writer", writer)
		none(t, "a local writer", local)
		mustRelease(t, l)
		none(t, "a queued writer", writer)
		none(t, "a local writer, while a remote reader holds,", local)
		mustRelease(t, r)
		w := <-writer
		if w.Token().Compare(r.Token()) <= 0 {
			t.Errorf("writer's token %v after a reader's %v", w.Token(), r.Token())
		}
		mustRelease(t, w)
		w2 := <-local
		if w2.Token().Compare(w.Token()) <= 0 {
			t.Errorf("writer's token %v after %v", w2.Token(), w.Token())
		}
		mustRelease(t, w2)
	})
}

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

// A writer that waits has listed the queue once, and walks through that list: it does
// not list again when the node that it waits for is gone. A downgrade only changes a
// node. The writer goes on waiting for it.
func TestDowngradeWhileAListIsWalked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, between := range []bool{false, true} { // whether a reader queues between the two, and leaves
			e := memdriver.New()
			a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
			l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
			reader := make(chan *zklock.Lock)
			if between {
				reader = acquiring(t, c.RWMutex("x").Reader(), t.Context())
			}
			writer := acquiring(t, b.Mutex("x"), t.Context())
			if err := l.Downgrade(t.Context()); err != nil {
				t.Fatal(err)
			}
			none(t, "the writer, while a downgraded one holds,", writer)
			if between {
				r := <-reader
				none(t, "the writer, while two readers hold,", writer)
				mustRelease(t, r)
			}
			time.Sleep(time.Second)
			none(t, "the writer, while a downgraded one still holds,", writer)
			if !l.Valid() {
				t.Error("the downgraded lock is not valid")
			}
			mustRelease(t, l)
			w := <-writer
			if w.Token().Compare(l.Token()) <= 0 {
				t.Errorf("token %v after %v", w.Token(), l.Token())
			}
			mustRelease(t, w)
		}
	})
}

// The name of a downgraded node still says writer, and the node was granted a moment
// ago. It must not be handed to a writer of the same process. Other processes have read in
// the node's data that it is a reader's, and their readers may hold the lock.
func TestDowngradedNodeIsNotHandedToALocalWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), map[string]string{"handover_time": "1h"}), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		reader := acquiring(t, b.RWMutex("x").Reader(), t.Context())
		local := acquiring(t, a.Mutex("x"), t.Context())
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := soon(t, "a reader of another process", reader)
		mustRelease(t, l)
		time.Sleep(time.Second)
		none(t, "a local writer, while a remote reader holds,", local)
		mustRelease(t, r)
		w := <-local
		if w.Token().Compare(r.Token()) <= 0 || w.Token().Zxid == l.Token().Zxid {
			t.Errorf("the writer's token is %v, after a reader's %v and the downgraded %v", w.Token(), r.Token(), l.Token())
		}
		mustRelease(t, w)
		if n := a.Stats().Handovers; n != 0 {
			t.Errorf("%d hand-overs, want none", n)
		}
	})
}
