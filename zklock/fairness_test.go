package zklock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

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
// That is so whether the writer waits in the turnstile or has its own place.
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

// The place of a waiter that gives up is passed to the next waiter, even if its session
// is being replaced.
func TestPlaceSurvivesOnARetiredSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"pool_max_lifetime": "5s"})
		other, third := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { _, err := c.Mutex("x").Acquire(ctx); gone <- err }()
		synctest.Wait()
		next := acquiring(t, c.Mutex("x"), t.Context())
		late := acquiring(t, third.Mutex("x"), t.Context())
		time.Sleep(6 * time.Second)
		cancel()
		<-gone
		time.Sleep(time.Second)
		mustRelease(t, l)
		synctest.Wait()
		none(t, "a waiter of another process that queued later", late)
		mustRelease(t, soon(t, "the next waiter of the process", next))
		mustRelease(t, <-late)
	})
}
