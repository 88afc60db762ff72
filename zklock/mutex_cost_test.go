package zklock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/internal/control"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestRoundTripsOfALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		var l *zklock.Lock
		acquire := func(a zklock.Acquirer) func() {
			return func() { l = mustLock(t)(a.Acquire(t.Context())) }
		}
		release := func() { mustRelease(t, l) }
		wantCost(t, "a new name", cost(e, acquire(c.Mutex("a"))), memcontrol.Ops{Multis: 1, MultiOps: 3})
		wantCost(t, "a release", cost(e, release), memcontrol.Ops{Multis: 1, MultiOps: 1})
		wantCost(t, "a known name", cost(e, acquire(c.Mutex("a"))), memcontrol.Ops{Multis: 1, MultiOps: 2})
		release()
		wantCost(t, "a reader of a known name", cost(e, acquire(c.RWMutex("a").Reader())), memcontrol.Ops{Multis: 1, MultiOps: 2})
		first := l
		wantCost(t, "a reader that joins", cost(e, acquire(c.RWMutex("a").Reader())), memcontrol.Ops{})
		wantCost(t, "the joined reader's release", cost(e, release), memcontrol.Ops{})
		wantCost(t, "the first reader's release", cost(e, func() { mustRelease(t, first) }), memcontrol.Ops{Multis: 1, MultiOps: 1})
		for range 10 {
			wantCost(t, "a name in use", cost(e, acquire(c.Mutex("a"))), memcontrol.Ops{Multis: 1, MultiOps: 2})
			wantCost(t, "its release", cost(e, release), memcontrol.Ops{Multis: 1, MultiOps: 1})
		}

		var eight []zklock.Acquirer
		for i := range 8 {
			eight = append(eight, c.Mutex(fmt.Sprint("n", i)))
		}
		all := zklock.All(eight...)
		acquire(all)()
		release()
		wantCost(t, "eight known names", cost(e, acquire(all)), memcontrol.Ops{Multis: 1, MultiOps: 16})
		wantCost(t, "the release of eight names", cost(e, release), memcontrol.Ops{Multis: 1, MultiOps: 8})
	})
}

func TestHandoverCostsNothingAndRequeueOneTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		m := c.Mutex("a")
		l := mustLock(t)(m.Acquire(t.Context()))
		next := make(chan *zklock.Lock)
		queue := func() {
			go func() { next <- mustLock(t)(m.Acquire(t.Context())) }()
			synctest.Wait()
		}
		queue()
		wantCost(t, "a hand-over", cost(e, func() { mustRelease(t, l); l = <-next }), memcontrol.Ops{})
		queue()
		time.Sleep(100 * time.Millisecond)
		wantCost(t, "a requeue", cost(e, func() { mustRelease(t, l); l = <-next }), memcontrol.Ops{Multis: 1, MultiOps: 3})
		mustRelease(t, l)
	})
}

func TestReleaseWakesOneOfFifty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		holder := connect(t, e.Connector(), nil)
		l := mustLock(t)(holder.Mutex("a").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan *zklock.Lock, 50)
		var wg sync.WaitGroup
		for range 50 {
			c := connect(t, e.Connector(), nil)
			wg.Go(func() {
				if l, err := c.Mutex("a").Acquire(ctx); err == nil {
					got <- l
				}
			})
		}
		if d := cost(e, func() { mustRelease(t, l); l = <-got }); d.Events != 1 {
			t.Errorf("a release sent %d watch events, want 1", d.Events)
		}
		cancel()
		wg.Wait()
		mustRelease(t, l)
	})
}

// When a lock is released, the waiters that are next wake and are granted it. The test counts their
// requests. It also measures the time from the release to the last grant, in messages that take 1
// ms each; those of the release and of its event are included.
//
// After a minute's rest the lease of a waiter's session has run out. One heartbeat of each session
// proves it again while the waiter reads. A single server answers both at the same time. If there
// are three servers, the client's server answers the read alone, and asks the leader for the
// heartbeat's write.
//
// A session gets its answers in order, and sends one heartbeat or Sync at a time. So a Sync of the
// session that is under way delays a wake-up. Here the pauses between Syncs have a fixed length, so
// that happens only to some readers of a crowd: see messages.delay.
func TestCostOfAWake(t *testing.T) {
	const message = time.Millisecond
	type requests struct{ lists, reads, heartbeats int } // of all waiters that are granted the lock
	type messages struct {
		oneServer, threeServers int
		delay                   int // how many more it may be on three servers, because a Sync was due
	}
	steady := control.WithJitter[zklock.Option](func(d time.Duration) time.Duration { return d * 7 / 8 })
	for _, test := range []struct {
		what    string
		rest    time.Duration // before each release
		writers int           // that hold the lock one after the other; the last one's release is measured
		next    int           // waiters that are granted the lock then
		readers bool
		want    requests
		took    messages
		late    int // reads more if the lease is proven after the list: the answers to both come in the same instant
	}{
		{"the first in line", time.Minute, 1, 1, false, requests{0, 0, 0}, messages{2, 5, 0}, 0},
		{"the third", 0, 2, 1, false, requests{1, 0, 0}, messages{4, 8, 0}, 0},
		{"the third, after a rest", time.Minute, 2, 1, false, requests{1, 0, 1}, messages{4, 12, 0}, 1},
		{"the twelfth", 0, 11, 1, false, requests{1, 0, 0}, messages{4, 8, 0}, 0},
		{"the twelfth, after a rest", time.Minute, 11, 1, false, requests{1, 0, 1}, messages{4, 12, 0}, 1},
		{"readers behind two writers", 0, 2, 20, true, requests{0, 40, 0}, messages{6, 10, 2}, 0},
		{"readers behind two writers, after a rest", time.Minute, 2, 20, true, requests{0, 40, 20}, messages{6, 14, 0}, 0},
	} {
		for _, servers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, servers=%d", test.what, servers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New(memdriver.WithServers(servers), memdriver.WithLatency(message))
					w := lineUp(t, e, test.writers+test.next, func(i int, c *zklock.Client) zklock.Acquirer {
						if test.readers && i >= test.writers {
							return c.RWMutex("x").Reader()
						}
						return c.Mutex("x")
					}, steady)
					defer w.leave()
					for _, got := range w.locks[:test.writers-1] {
						time.Sleep(test.rest)
						mustRelease(t, soon(t, "a writer", got))
					}
					last := soon(t, "the last writer", w.locks[test.writers-1])
					time.Sleep(test.rest)
					w.asked.take()
					var locks []*zklock.Lock
					began, took := time.Now(), time.Duration(0)
					d := cost(e, func() {
						mustRelease(t, last)
						for _, got := range w.locks[test.writers:] {
							locks = append(locks, soon(t, "a waiter", got))
						}
						took = time.Since(began)
					})
					got, asked := requests{d.Children, d.Watches + d.Gets, 0}, w.asked.take()
					for i := range w.locks[test.writers:] {
						got.heartbeats += asked[fmt.Sprint(test.writers+i, " heartbeat")]
					}
					want, least, most := test.want, test.took.oneServer, test.took.oneServer
					if servers == 3 {
						least, most = test.took.threeServers, test.took.threeServers+test.took.delay
					}
					if test.late > 0 && got.reads == want.reads+test.late {
						want.reads, least, most = got.reads, least+2, most+2
					}
					if n := int(took / message); got != want || n < least || n > most {
						t.Errorf("%+v in %d messages, want %+v in %d to %d", got, n, want, least, most)
					}
					for _, l := range locks {
						mustRelease(t, l)
					}
				})
			})
		}
	}
}

// A thousand readers of a hundred clients, each with a place of its own, wait behind two
// writers. When the second writer leaves, none of them lists the queue.
//
//	ZKLOCK_WAITERS=10000 go test ./zklock -run WaitersMakeNoLists   ten thousand, in a minute
func TestWaitersMakeNoLists(t *testing.T) {
	const clients = 100
	each := long.Count(t, "ZKLOCK_WAITERS", 1000, 1000) / clients
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		first := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		second := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		var got []chan *zklock.Lock
		for i := range clients {
			c := connect(t, e.Connector(), map[string]string{"handover_time": "0s"})
			for range each {
				l := make(chan *zklock.Lock, 1)
				go func() { l <- mustLock(t)(c.RWMutex("x").Reader().Acquire(t.Context(), zklock.WithoutHandover())) }()
				got = append(got, l)
			}
			if i%10 == 9 {
				synctest.Wait()
			}
		}
		time.Sleep(time.Minute)
		mustRelease(t, first)
		writer := soon(t, "the second writer", second)
		time.Sleep(time.Minute)
		var locks []*zklock.Lock
		d := cost(e, func() {
			mustRelease(t, writer)
			for _, l := range got {
				locks = append(locks, soon(t, "a reader", l))
			}
		})
		t.Logf("%d waiters: %+v", len(got), d)
		readers := clients * each
		// Two waiters of a session may ask for the same node at the same time.
		if d.Children > 0 || d.Watches+d.Gets > 3*readers || d.Writes() > clients+2 || d.Events > readers+clients {
			t.Errorf("%d waiters of %d clients made %d lists, %d reads and %d writes; want no list, three reads each at most and a heartbeat for each client",
				readers, clients, d.Children, d.Watches+d.Gets, d.Writes())
		}
		for _, l := range locks {
			go mustRelease(t, l)
		}
		synctest.Wait()
	})
}

// A thousand waiting clients get the lock one after the other. A grant costs one list at most, and no read but
// those of the first two, which have at most two ahead. If each waiter instead read every contender that was
// ahead of it when it came, that would be half a million reads in all.
func TestDrainOfManyClientsCostsOneListAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 1000
		e := memdriver.New()
		held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		var got []chan *zklock.Lock
		for range clients {
			got = append(got, acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context()))
		}
		d := cost(e, func() {
			for _, g := range got {
				mustRelease(t, held)
				held = <-g
			}
		})
		mustRelease(t, held)
		if d.Children > clients || d.Watches+d.Gets > 3 || d.Events > clients || d.Writes() > clients {
			t.Errorf("%d grants cost %d lists, %d reads, %d events and %d writes", clients, d.Children, d.Watches+d.Gets, d.Events, d.Writes())
		}
	})
}
