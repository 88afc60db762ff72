package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// onWritersNode returns a released writer of c, and a reader of c that now holds the writer's
// node. Half of handover_time has passed since the grant.
func onWritersNode(t *testing.T, c *zklock.Client) (writer, reader *zklock.Lock) {
	t.Helper()
	writer = mustLock(t)(c.Mutex("x").Acquire(t.Context()))
	heir := acquiring(t, c.RWMutex("x").Reader(), t.Context())
	time.Sleep(50 * time.Millisecond)
	mustRelease(t, writer)
	if reader = <-heir; reader.Token().Zxid != writer.Token().Zxid {
		t.Fatal("the node was not handed over")
	}
	return writer, reader
}

// Readers of other processes wait for a reader that holds a writer's node, but no longer
// than they would for writers: until handover_time has passed since the node was
// granted. A reader of the same process that has a place of its own waits as they do.
func TestReadersElsewhereWaitForHandoverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		began := time.Now()
		_, reader := onWritersNode(t, c)
		if _, err := d.RWMutex("x").Reader().TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("a try while a reader holds a writer's node: %v", err)
		}
		remote := acquiring(t, d.RWMutex("x").Reader(), t.Context())
		own := acquiring(t, c.RWMutex("x").Reader(), t.Context(), zklock.WithoutHandover())
		none(t, "a reader, while another holds a writer's node,", remote)
		for which, got := range map[string]chan *zklock.Lock{"of another process": remote, "with a place of its own": own} {
			l := soon(t, "a reader "+which, got)
			if waited := time.Since(began); waited != 100*time.Millisecond {
				t.Errorf("a reader %s got in %v after the grant, want 100ms", which, waited)
			}
			defer mustRelease(t, l)
		}
		mustRelease(t, mustLock(t)(d.RWMutex("x").Reader().TryAcquire(t.Context())))
		mustRelease(t, reader)
	})
}

// A node may pass from writers to readers and back any number of times. A reader of another
// process waits only until handover_time is over, and then until the goroutine that holds
// the node at that moment releases it.
func TestNodeThatGoesBackAndForthIsGivenUp(t *testing.T) {
	for _, stay := range []time.Duration{30 * time.Millisecond, 45 * time.Millisecond} {
		t.Run(stay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
				began := time.Now()
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				done := make(chan struct{})
				go func() {
					defer close(done)
					for i := range 20 {
						a := zklock.Acquirer(c.Mutex("x"))
						if i%2 == 0 {
							a = c.RWMutex("x").Reader()
						}
						next := make(chan *zklock.Lock)
						go func() { next <- mustLock(t)(a.Acquire(t.Context())) }()
						time.Sleep(stay)
						mustRelease(t, l)
						l = <-next
					}
					mustRelease(t, l)
				}()
				got := <-acquiring(t, d.RWMutex("x").Reader(), t.Context())
				if waited := time.Since(began); waited > 100*time.Millisecond+stay {
					t.Errorf("a reader of another process got in %v after the grant, want at most %v", waited, 100*time.Millisecond+stay)
				}
				mustRelease(t, got)
				<-done
			})
		})
	}
}

// A writer waits for readers to leave a writer's node, and their session is lost. The
// writer gets in on another session. At the end of handover_time the old node would have become
// a reader's. The writer's new node stays a writer's.
func TestSessionLostUnderReadersOnAWritersNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		_, reader := onWritersNode(t, c)
		writer := acquiring(t, c.Mutex("x"), t.Context())
		none(t, "a writer, while a reader holds,", writer)
		e.Expire(e.Sessions()[0])
		w := soon(t, "the writer", writer)
		if err := reader.Err(); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("the reader: %v", err)
		}
		remote := acquiring(t, d.RWMutex("x").Reader(), t.Context())
		time.Sleep(time.Second)
		none(t, "a reader, while a writer holds,", remote)
		if w.Mode() != zklock.Exclusive || !w.Valid() {
			t.Errorf("the writer's lock is %v, valid: %v", w.Mode(), w.Valid())
		}
		mustRelease(t, w)
		mustRelease(t, <-remote)
	})
}

// At the end of handover_time a writer's node is marked as a reader's only if readers
// hold it then: not if they have left, nor if the client is closed, nor if a writer
// holds it again.
func TestWritersNodeStaysAWriters(t *testing.T) {
	for _, what := range []string{"given up", "taken again", "back with a writer", "closed"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
				_, reader := onWritersNode(t, c)
				var l *zklock.Lock
				switch what {
				case "given up":
					mustRelease(t, reader)
				case "taken again":
					mustRelease(t, reader)
					l = mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				case "back with a writer":
					writer := acquiring(t, c.Mutex("x"), t.Context())
					mustRelease(t, reader)
					l = <-writer
				case "closed":
					if err := c.Close(); err != nil {
						t.Fatal(err)
					}
				}
				remote := make(chan *zklock.Lock)
				if l != nil {
					remote = acquiring(t, d.RWMutex("x").Reader(), t.Context())
				}
				if after := cost(e, func() { time.Sleep(500 * time.Millisecond) }); after.Sets != 0 {
					t.Errorf("the end of handover_time cost %+v, although no reader holds the node", after)
				}
				if l != nil {
					none(t, "a reader, while a writer holds,", remote)
					mustRelease(t, l)
					mustRelease(t, <-remote)
				}
			})
		})
	}
}

// The lease is too short to hand a writer's place over. The place is reserved for the
// next waiter, a reader, which makes it a reader's. The writers behind that reader take
// places of their own.
func TestKeptPlaceGoesToAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), map[string]string{"handover_time": "1h"}), connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		heir, writer := acquiring(t, c.RWMutex("x").Reader(), t.Context()), acquiring(t, c.Mutex("x"), t.Context())
		time.Sleep(5 * time.Second)
		e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		for time.Until(l.Until()) >= 10*time.Second/4 {
			time.Sleep(100 * time.Millisecond)
		}
		go func() { mustRelease(t, l) }()
		none(t, "the next waiter, on the rest of a lease,", heir)
		e.Heal()
		reader := soon(t, "the reader", heir)
		if reader.Token().Zxid != l.Token().Zxid {
			t.Error("the reader did not get the writer's place")
		}
		time.Sleep(time.Second)
		none(t, "a writer, while a reader holds,", writer)
		remote := acquiring(t, d.RWMutex("x").Reader(), t.Context())
		none(t, "a reader, behind a writer,", remote)
		mustRelease(t, reader)
		w := soon(t, "the writer", writer)
		if w.Token().Zxid == reader.Token().Zxid {
			t.Error("the writer had no place of its own")
		}
		mustRelease(t, w)
		mustRelease(t, soon(t, "the reader of another process", remote))
	})
}

// An acquisition of several names (zklock.All) waits with a place of its own. Behind readers on a
// writer's node it gets its turn in the order of the queue. Later readers do not join the readers
// that hold.
func TestAllBehindReadersOnAWritersNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		_, reader := onWritersNode(t, c)
		all := acquiring(t, zklock.All(c.Mutex("x"), c.Mutex("y")), t.Context())
		late := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		time.Sleep(time.Second)
		none(t, "All, while a reader holds,", all)
		none(t, "a reader, behind All,", late)
		mustRelease(t, reader)
		l := soon(t, "All", all)
		none(t, "a reader, while All holds,", late)
		mustRelease(t, l)
		mustRelease(t, soon(t, "the reader", late))
		synctest.Wait()
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
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

// A reader joins another reader of its process only while a quarter of the lease is
// left, which is the rule for every grant.
func TestSharingNeedsALease(t *testing.T) {
	corekit.Short(t)
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
