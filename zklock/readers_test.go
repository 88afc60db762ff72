package zklock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// onWritersNode has a reader of c hold the node that a writer of c has taken, for
// half of handover_time so far.
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

// Readers of other processes wait for one that has a writer's node, but no longer
// than they would for writers: until handover_time has passed since the node was
// granted. What has a place of its own in the same process waits as they do.
func TestReadersElsewhereWaitForHandoverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		began := time.Now()
		_, reader := onWritersNode(t, c)
		if _, err := d.RWMutex("x").Reader().TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("a try beside a writer's node: %v", err)
		}
		remote := acquiring(t, d.RWMutex("x").Reader(), t.Context())
		own := acquiring(t, c.RWMutex("x").Reader(), t.Context(), zklock.WithoutHandover())
		none(t, "a reader, beside a writer's node,", remote)
		for who, got := range map[string]chan *zklock.Lock{"of another process": remote, "with a place of its own": own} {
			l := soon(t, "a reader "+who, got)
			if waited := time.Since(began); waited != 100*time.Millisecond {
				t.Errorf("a reader %s got in %v after the grant", who, waited)
			}
			defer mustRelease(t, l)
		}
		mustRelease(t, mustLock(t)(d.RWMutex("x").Reader().TryAcquire(t.Context())))
		mustRelease(t, reader)
	})
}

// However often a node goes from writers to readers and back, a reader of another
// process waits for handover_time and for whoever holds it then, be it a reader or
// a writer.
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
					t.Errorf("a reader of another process got in %v after it came", waited)
				}
				mustRelease(t, got)
				<-done
			})
		})
	}
}

// A writer that waits for readers to leave a writer's node gets in on another
// session when theirs is lost; and what was put off until the end of handover_time
// does not happen to what it holds then.
func TestSessionLostUnderReadersOnAWritersNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		_, reader := onWritersNode(t, c)
		writer := acquiring(t, c.Mutex("x"), t.Context())
		none(t, "a writer, beside a reader,", writer)
		e.Expire(e.Sessions()[0])
		w := soon(t, "the writer", writer)
		if err := reader.Err(); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("the reader: %v", err)
		}
		remote := acquiring(t, d.RWMutex("x").Reader(), t.Context())
		time.Sleep(time.Second)
		none(t, "a reader, beside a writer,", remote)
		if w.Mode() != zklock.Exclusive || !w.Valid() {
			t.Errorf("the writer's lock is %v, valid: %v", w.Mode(), w.Valid())
		}
		mustRelease(t, w)
		mustRelease(t, <-remote)
	})
}

// What the end of handover_time brings is for readers who have the node then: for
// nobody if they have left, or the client is closed, or a writer has it again.
func TestWritersNodeStaysAWriters(t *testing.T) {
	for _, what := range []string{"given up", "taken anew", "back with a writer", "closed"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
				_, reader := onWritersNode(t, c)
				var l *zklock.Lock
				switch what {
				case "given up":
					mustRelease(t, reader)
				case "taken anew":
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
					t.Errorf("%+v, for nobody", after)
				}
				if l != nil {
					none(t, "a reader, beside a writer,", remote)
					mustRelease(t, l)
					mustRelease(t, <-remote)
				}
			})
		})
	}
}

// A lease that is too short to hand a place over at the end of a writer's hold
// keeps it for whoever is next; a reader makes it a reader's, and writers behind it
// take places of their own.
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
		none(t, "the next, on the rest of a lease,", heir)
		e.Heal()
		reader := soon(t, "the reader", heir)
		if reader.Token().Zxid != l.Token().Zxid {
			t.Error("the place was not kept")
		}
		time.Sleep(time.Second)
		none(t, "a writer, beside a reader,", writer)
		remote := acquiring(t, d.RWMutex("x").Reader(), t.Context())
		none(t, "a reader that came after a writer", remote)
		mustRelease(t, reader)
		w := soon(t, "the writer", writer)
		if w.Token().Zxid == reader.Token().Zxid {
			t.Error("the writer had no place of its own")
		}
		mustRelease(t, w)
		mustRelease(t, soon(t, "the reader of another process", remote))
	})
}

// Who waits with a place of its own, as All does, behind readers on a writer's node
// gets its turn in the order of the queue, and keeps readers who come after it from
// joining those.
func TestAllBehindReadersOnAWritersNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		_, reader := onWritersNode(t, c)
		all := acquiring(t, zklock.All(c.Mutex("x"), c.Mutex("y")), t.Context())
		late := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		time.Sleep(time.Second)
		none(t, "All, beside a reader,", all)
		none(t, "a reader that came after it", late)
		mustRelease(t, reader)
		l := soon(t, "All", all)
		none(t, "a reader, beside All,", late)
		mustRelease(t, l)
		mustRelease(t, soon(t, "the reader", late))
		synctest.Wait()
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}
