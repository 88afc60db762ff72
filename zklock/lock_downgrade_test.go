package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Downgrade waits for the writer's Txns that are under way: none may be applied while
// readers hold.
func TestDowngradeWaitsForTxns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Path("/data", faultdriver.On(faultdriver.Multi, faultdriver.Delay(2*time.Second)))
		c, other := connect(t, faultdriver.Wrap(e.Connector(), faults), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		local, remote := acquiring(t, c.RWMutex("x").Reader(), t.Context()), acquiring(t, other.RWMutex("x").Reader(), t.Context())
		wrote := make(chan error, 1)
		go func() {
			_, err := l.Txn(t.Context(), driver.CreateOp("/data", nil, driver.Persistent, driver.OpenACL(driver.PermAll)))
			wrote <- err
		}()
		synctest.Wait()
		downgraded := make(chan error, 1)
		go func() { downgraded <- l.Downgrade(t.Context()) }()
		none(t, "a reader of the process, while a Txn is under way,", local)
		none(t, "a reader of another process, while a Txn is under way,", remote)
		if err := <-wrote; err != nil {
			t.Error(err)
		}
		if err := <-downgraded; err != nil || l.Mode() != zklock.Shared {
			t.Errorf("Downgrade: %v, and the lock is held as %v", err, l.Mode())
		}
		mustRelease(t, soon(t, "a reader of the process", local))
		mustRelease(t, soon(t, "a reader of another process", remote))
		mustRelease(t, l)
	})
}

// A writer's Txn whose outcome is unknown may be applied later. If it were applied while readers
// hold, they would see the change. So Downgrade refuses as long as there is such a Txn.
func TestNoDowngradeUnderATxnInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		gate := &faultdriver.Gate{}
		faults := faultdriver.Path("/data", faultdriver.On(faultdriver.Multi, faultdriver.Late(gate)))
		c, other := connect(t, faultdriver.Wrap(e.Connector(), faults), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		if _, err := l.Txn(t.Context(), driver.CreateOp("/data", nil, driver.Persistent, driver.OpenACL(driver.PermAll))); !errors.Is(err, zklock.ErrUnknownOutcome) {
			t.Fatal(err)
		}
		if err := l.Downgrade(t.Context()); !errors.Is(err, zklock.ErrUnknownOutcome) || l.Mode() != zklock.Exclusive || !l.Valid() {
			t.Errorf("Downgrade: %v, and the lock is held as %v", err, l.Mode())
		}
		readers := []chan *zklock.Lock{acquiring(t, c.RWMutex("x").Reader(), t.Context()), acquiring(t, other.RWMutex("x").Reader(), t.Context())}
		for _, got := range readers {
			none(t, "a reader", got)
		}
		mustRelease(t, l)
		var held []*zklock.Lock
		for _, got := range readers {
			held = append(held, soon(t, "a reader", got))
		}
		gate.Release()
		synctest.Wait()
		if _, err := plain(t, e).Get(t.Context(), "/data"); !errors.Is(err, driver.ErrNoNode) {
			t.Errorf("the Txn was applied while readers hold: %v", err)
		}
		for _, l := range held {
			mustRelease(t, l)
		}
	})
}

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

// A writer that waits for a node does not take a change of that node for its departure.
func TestDowngradeLetsNoWriterIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		writer := acquiring(t, b.Mutex("x"), t.Context())
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		none(t, "a writer, while the downgraded one holds,", writer)
		time.Sleep(5 * time.Second)
		none(t, "a writer, while the downgraded one holds,", writer)
		mustRelease(t, l)
		mustRelease(t, <-writer)
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

// Many places were writers', as their nodes' names say, and are readers' now: in each client a
// writer has queued, a reader has queued behind it, and the writer has left. Readers wait for none of
// these places, and learn that from each node once, however many there are. The clock is the real
// one: a reader that lists the queue without end would stop a bubble's.
func TestReadersBehindManyLoweredPlaces(t *testing.T) {
	const places = 12 // more than a line that is walked has
	e := memdriver.New()
	theirs := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
	eyes := connect(t, e.Connector(), nil)
	readers := make(chan *zklock.Lock, places+1)
	read := func(c *zklock.Client) {
		l, err := c.RWMutex("x").Reader().Acquire(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		readers <- l
	}
	for i := range places {
		c := connect(t, e.Connector(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			_, _ = c.Mutex("x").Acquire(ctx)
		}()
		wait.Until(t, "the writer waits", func() bool { return nodes(e) == i+2 && c.Stats().Waiting == 1 })
		go read(c)
		wait.Until(t, "the reader waits", func() bool { return c.Stats().Waiting == 2 })
		cancel()
		<-left
		wait.Until(t, "the place is the reader's", func() bool {
			found, err := eyes.Contenders(t.Context(), "x")
			return err == nil && len(found) == i+2 && found[i+1].Mode == zklock.Shared
		})
	}
	go read(connect(t, e.Connector(), nil))
	wait.Until(t, "the last reader waits", func() bool { return nodes(e) == places+2 })
	before := memcontrol.Of(e).Ops().Children
	mustRelease(t, theirs)
	for i := range places + 1 {
		select {
		case l := <-readers:
			defer mustRelease(t, l)
		case <-time.After(10 * time.Second):
			t.Fatalf("only %d of %d readers have the lock; %d lists since the writer's release", i, places+1, memcontrol.Of(e).Ops().Children-before)
		}
	}
	// A line that is too long to be walked is listed for each node that turns out to be a reader's.
	if lists := memcontrol.Of(e).Ops().Children - before; lists > places*(places+1) {
		t.Errorf("%d lists, want at most one for each reader and place ahead of it", lists)
	}
}
