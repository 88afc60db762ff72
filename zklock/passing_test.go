package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A place is handed over only while a quarter of the lease is left. Otherwise it is
// reserved for the next waiter, which waits until a quorum has answered.
func TestHandoverNeedsALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"handover_time": "1m"})
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, c.Mutex("x"), t.Context())
		e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		time.Sleep(8 * time.Second)
		if left := time.Until(l.Until()); left <= 0 || left >= 2500*time.Millisecond || !l.Valid() {
			t.Fatalf("%v of the lease is left, want more than 0 and less than a quarter", left)
		}
		mustRelease(t, l)
		none(t, "the next waiter, on a lease that is nearly over,", next)
		e.Heal()
		n := <-next
		if left := time.Until(n.Until()); left < 2500*time.Millisecond {
			t.Errorf("granted with %v of the lease left, want a quarter at least", left)
		}
		if n.Token() != (zklock.Token{Zxid: l.Token().Zxid, Turn: 1}) {
			t.Errorf("token %v after %v: the next waiter did not get the same place", n.Token(), l.Token())
		}
		mustRelease(t, n)
	})
}

// A place is reserved for a waiter, and the waiter gives up. The place is not held
// again: the next waiter queues at the tail, with a token of its own, and the old node
// is removed.
func TestReservedPlaceIsNotTakenUpTwice(t *testing.T) {
	for _, others := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			c := connect(t, e.Connector(), map[string]string{"handover_time": "1m"})
			l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
			ctx, giveUp := context.WithCancel(t.Context())
			first := make(chan error, 1)
			go func() {
				_, err := c.Mutex("x").Acquire(ctx)
				first <- err
			}()
			synctest.Wait()
			var next []chan *zklock.Lock
			for range others {
				next = append(next, acquiring(t, c.Mutex("x"), t.Context()))
			}
			e.Partition(memdriver.AroundSession(e.Sessions()[0]))
			time.Sleep(8 * time.Second)
			mustRelease(t, l) // little of the lease is left: the place is reserved
			synctest.Wait()
			giveUp()
			if err := <-first; !errors.Is(err, context.Canceled) {
				t.Errorf("the waiter that gave up: %v, want context.Canceled", err)
			}
			e.Heal()
			for _, ch := range next {
				n := <-ch
				if n.Token().Zxid <= l.Token().Zxid {
					t.Errorf("token %v after %v: the reserved place was held again", n.Token(), l.Token())
				}
				mustRelease(t, n)
			}
			time.Sleep(time.Second)
			if left := nodes(e); left != 0 {
				t.Errorf("with %d other waiters: %d nodes are left", others, left)
			}
		})
	}
}

// A place whose node an operator has deleted is not handed over. That holds even if the holder is
// releasing the lock at that moment, and so cannot be notified of the loss.
func TestDeletedNodeIsNotHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Path("/data", faultdriver.On(faultdriver.Multi, faultdriver.DelayReply(2*time.Second)))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), map[string]string{"handover_time": "1m"})
		other := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		y := mustLock(t)(c.Mutex("y").Acquire(t.Context())) // keeps the session's lease renewed
		next := acquiring(t, c.Mutex("x"), t.Context())
		time.Sleep(2 * time.Second) // until the node is watched
		go func() {
			if _, err := l.Txn(t.Context(), driver.CreateOp("/data", nil, driver.Persistent, driver.OpenACL(driver.PermAll))); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		released := make(chan error, 1)
		go func() { released <- l.Release(context.Background()) }() // waits for the Txn
		synctest.Wait()
		e.Break("/zklock/x")
		first := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		<-released
		none(t, "the next waiter, in a place whose node is gone,", next)
		mustRelease(t, first)
		n := <-next
		if n.Token().Compare(first.Token()) <= 0 {
			t.Errorf("token %v after %v", n.Token(), first.Token())
		}
		mustRelease(t, n)
		mustRelease(t, y)
	})
}

// A lock on several names has a place of its own, in the queues of all its names. No
// place on one name is handed over to it, and its place is not handed over.
func TestAllIsNotHandedAPlaceOnOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		y := mustLock(t)(other.Mutex("y").Acquire(t.Context()))
		x := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		all := acquiring(t, zklock.All(c.Mutex("x"), c.Mutex("y")), t.Context())
		mustRelease(t, x)
		none(t, "All of x and y, while another client holds y,", all)
		mustRelease(t, y)
		l := <-all
		next := acquiring(t, c.Mutex("x"), t.Context())
		mustRelease(t, l)
		n := <-next
		if n.Token().Zxid == l.Token().Zxid {
			t.Errorf("token %v after All's %v: the place was handed over", n.Token(), l.Token())
		}
		mustRelease(t, n)
	})
}

// A writer that arrives after a reader that gave up does not take over the reader's place:
// otherwise other readers would get in while the writer holds the lock.
func TestWriterDoesNotGoOnInAReadersPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() { _, err := b.RWMutex("x").Reader().Acquire(ctx); gaveUp <- err }()
		synctest.Wait()
		writer := acquiring(t, b.Mutex("x"), t.Context())
		reader := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		cancel()
		if err := <-gaveUp; err == nil {
			t.Fatal("the reader got in")
		}
		synctest.Wait()
		mustRelease(t, held)
		r := <-reader
		none(t, "a writer, while a reader holds,", writer)
		mustRelease(t, r)
		mustRelease(t, <-writer)
	})
}

// Readers of one process share a place until handover_time has passed since its grant,
// but not while a writer of the same process waits.
func TestReadersShareForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		r := c.RWMutex("x").Reader()
		first := mustLock(t)(r.Acquire(t.Context()))
		time.Sleep(99 * time.Millisecond)
		second := mustLock(t)(r.Acquire(t.Context()))
		time.Sleep(time.Millisecond)
		third := mustLock(t)(r.Acquire(t.Context()))
		if second.Token() != first.Token() || third.Token().Zxid == first.Token().Zxid {
			t.Errorf("tokens %v, %v, %v: want the second reader to share the first one's place, and the third to have its own", first.Token(), second.Token(), third.Token())
		}
		writer := acquiring(t, c.Mutex("x"), t.Context())
		late := acquiring(t, r, t.Context())
		none(t, "a reader, behind a waiting writer,", late)
		for _, l := range []*zklock.Lock{first, second, third} {
			none(t, "a writer, while readers hold,", writer)
			mustRelease(t, l)
		}
		w := <-writer
		none(t, "a reader, while a writer holds,", late)
		mustRelease(t, w)
		mustRelease(t, <-late)
	})
}

// A waiter gives up after it was sent the lock, or the lead of the turnstile, and before it
// has received that. It passes on to the next waiter what it was sent.
func TestWaiterThatLeavesPassesOnWhatItGot(t *testing.T) {
	defer corekit.SingleProcessor()()                      // so that the waiter that gives up runs only after the release
	for _, held := range []time.Duration{0, time.Second} { // it is handed the lock; it is made the leader
		synctest.Test(t, func(t *testing.T) {
			c := connect(t, memdriver.New().Connector(), nil)
			for range 20 {
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				ctx, cancel := context.WithCancel(t.Context())
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					if l, err := c.Mutex("x").Acquire(ctx); err == nil {
						mustRelease(t, l)
					}
				}()
				synctest.Wait()
				next := acquiring(t, c.Mutex("x"), t.Context())
				time.Sleep(held)
				cancel()
				mustRelease(t, l)
				<-gone
				synctest.Wait()
				if len(next) != 1 {
					t.Fatalf("held for %v: the lock is free, and the next waiter did not get it", held)
				}
				mustRelease(t, <-next)
			}
		})
	}
}

// Two waiters give up at once: the leader, and the waiter that is made the leader in its
// stead. Their place in the ensemble's queue passes to the third waiter, and keeps its
// position.
func TestPlaceSurvivesTwoThatGiveUp(t *testing.T) {
	defer corekit.SingleProcessor()()
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		for range 20 {
			holder := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
			var cancels []context.CancelFunc
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				cancels = append(cancels, cancel)
				go func() {
					if _, err := c.Mutex("x").Acquire(ctx); err == nil {
						t.Error("a waiter that had given up got in")
					}
				}()
				synctest.Wait()
			}
			third := acquiring(t, c.Mutex("x"), t.Context())
			place := queueOf(t, other, "x")[1]
			cancels[1]() // it wakes up second, when it is the leader already
			cancels[0]()
			synctest.Wait()
			time.Sleep(time.Second)
			if q := queueOf(t, other, "x"); len(q) != 2 || q[1] != place {
				t.Fatalf("the queue is %v, want two nodes, of which %s is the second", q, place)
			}
			mustRelease(t, holder)
			mustRelease(t, <-third)
		}
	})
}

// queueOf returns the names of a lock's queue nodes, in order.
func queueOf(t *testing.T, c *zklock.Client, name string) (queue []string) {
	t.Helper()
	contenders, err := c.Contenders(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, contender := range contenders {
		queue = append(queue, contender.Node)
	}
	return queue
}

// max_contenders limits new contenders only. A waiter that is in the queue already is not
// refused when its client replaces its place by a new one at the tail.
func TestRequeueIsNotANewcomer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"max_contenders": "1"})
		other := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, c.Mutex("x"), t.Context())
		theirs := acquiring(t, other.Mutex("x"), t.Context())
		time.Sleep(time.Second) // longer than handover_time
		mustRelease(t, l)
		mustRelease(t, <-theirs)
		mustRelease(t, <-next)
	})
}

// A reader joins another reader of its process only while a quarter of the lease is
// left, which is the rule for every grant.
func TestSharingNeedsALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"handover_time": "1m"})
		reader := c.RWMutex("x").Reader()
		first := mustLock(t)(reader.Acquire(t.Context()))
		e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		time.Sleep(8 * time.Second)
		if !first.Valid() {
			t.Fatal("the lease has run out already")
		}
		second := acquiring(t, reader, t.Context())
		none(t, "another reader, on a lease that is nearly over,", second)
		e.Heal()
		mustRelease(t, <-second)
		mustRelease(t, first)
	})
}

// A reader that joins a downgraded writer has a later token than the writer.
func TestReaderThatJoinsADowngradedWriterHasALaterToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		if modes := l.Modes(); len(modes) != 1 || modes[0] != zklock.Shared {
			t.Errorf("after the downgrade the lock's modes are %v, want only Shared", modes)
		}
		r := mustLock(t)(c.RWMutex("x").Reader().Acquire(t.Context()))
		if r.Token().Zxid != l.Token().Zxid || r.Token().Compare(l.Token()) <= 0 {
			t.Errorf("the reader's token is %v and the downgraded writer's is %v, want a later one with the same zxid", r.Token(), l.Token())
		}
		mustRelease(t, l)
		mustRelease(t, r)
	})
}
