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
			t.Errorf("%v, token %v, was %v", l.Mode(), l.Token(), token)
		}
		r := <-reader
		if r.Token().Compare(token) <= 0 {
			t.Errorf("reader's token %v after %v", r.Token(), token)
		}
		none(t, "a queued writer", writer)
		none(t, "a local writer", local)
		mustRelease(t, l)
		none(t, "a queued writer", writer)
		none(t, "a local writer beside a remote reader", local)
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

// TestTryReaderAfterNewestReaderHoldLeft: two reader holds, the newer is released: a try panics.
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
				t.Errorf("TryAcquire beside a reader: %v", err)
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
			t.Fatalf("a reader beside a reader: %v", err)
		}
		l3.Release(t.Context())
		l1.Release(t.Context())
	})
}

// TestConcurrentReaderTries: concurrent reader tries on a free lock.
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
					t.Errorf("no writer anywhere: %v", err)
					return
				}
				l.Release(t.Context())
			})
		}
		wg.Wait()
	})
}

// Readers are together and writers alone, in the order of the queue. No reader
// passes a queued writer but a local one, for handover_time after the node was
// granted; and a local writer that waits stops those.
func TestReadersPassNoQueuedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		reader := func(c *zklock.Client) zklock.Acquirer { return c.RWMutex("x").Reader() }
		first := mustLock(t)(reader(a).Acquire(t.Context()))
		beside := mustLock(t)(reader(b).Acquire(t.Context()))
		writer := acquiring(t, c.Mutex("x"), t.Context())
		late := acquiring(t, reader(c), t.Context()) // behind its own process's writer
		joined := mustLock(t)(reader(a).Acquire(t.Context(), zklock.WithWait(0)))
		if joined.Token() != first.Token() || beside.Token().Compare(first.Token()) <= 0 {
			t.Errorf("tokens: %v, joined %v, beside %v", first.Token(), joined.Token(), beside.Token())
		}
		time.Sleep(100 * time.Millisecond)
		after := acquiring(t, reader(a), t.Context())
		none(t, "a local reader, after handover_time", after)
		if _, err := reader(b).TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("a try, after handover_time: %v", err)
		}
		for _, l := range []*zklock.Lock{joined, beside, first} {
			none(t, "the writer, beside readers", writer)
			none(t, "a later reader, before the writer", late)
			mustRelease(t, l)
		}
		w := <-writer
		none(t, "a reader, beside the writer", late)
		none(t, "a local reader, beside the writer", after)
		mustRelease(t, w)
		// The local one gets the writer's node, whose name excludes the other.
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
			t.Errorf("a try behind a local writer: %v", err)
		}
		reader := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		none(t, "a reader, before a local writer", reader)
		mustRelease(t, first)
		w := <-writer
		if w.Token().Zxid == first.Token().Zxid {
			t.Error("a reader's node was handed to a writer")
		}
		none(t, "a reader, beside a writer", reader)
		mustRelease(t, w)
		r := <-reader
		if r.Token().Zxid != w.Token().Zxid || r.Token().Turn != w.Token().Turn+1 {
			t.Errorf("a reader's token %v after a writer's %v: want it handed over", r.Token(), w.Token())
		}
		mustRelease(t, r)
	})
}

// A writer that waits behind one node only does not list again when that one is
// gone, but walks on. A downgrade changes the node, and it stays where it is.
func TestDowngradeBesideAWalkedList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, between := range []bool{false, true} { // a reader, which comes and goes
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
			none(t, "the writer, beside a downgraded one", writer)
			if between {
				r := <-reader
				none(t, "the writer, beside two readers", writer)
				mustRelease(t, r)
			}
			time.Sleep(time.Second)
			none(t, "the writer, still beside a downgraded one", writer)
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

// A downgraded node's name still says writer, and it was granted a moment ago.
// Handed to a writer of the same process it would let him in beside readers who
// have read its data.
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
		none(t, "a local writer, beside a remote reader", local)
		mustRelease(t, r)
		w := <-local
		if w.Token().Compare(r.Token()) <= 0 || w.Token().Zxid == l.Token().Zxid {
			t.Errorf("the writer's token is %v, after a reader's %v and the downgraded %v", w.Token(), r.Token(), l.Token())
		}
		mustRelease(t, w)
		if n := a.Stats().Handovers; n != 0 {
			t.Errorf("%d hand-overs", n)
		}
	})
}
