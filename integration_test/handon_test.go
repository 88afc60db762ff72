package integration_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// TestHandOnAtADistance: from the release of a lock to the grant to the client that is next in line, its connection carries
// one event of the server, and no request. So the next holder has the lock one way there and one way back after the release
// began. zk.Lock lists the queue after the event, which takes another round trip. The figures are printed.
func TestHandOnAtADistance(t *testing.T) {
	long.Test(t, "it waits for messages that are under way")
	server := ensemble.Start(t, ensemble.Shipped(1))
	for _, way := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond} {
		root := rootOf(t)
		link := func() *proxy.Proxy {
			p, err := proxy.NewCounting(server.Hosts())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			p.Delay(proxy.Both, way)
			return p
		}
		holders, waiters := link(), link()
		a, b := dial(t, holders.Addr(), keys()), dial(t, waiters.Addr(), keys())
		ours := handOns(t, way, waiters, func() handOn {
			held, granted := acquire(t, a.Mutex("x")), make(chan *zklock.Lock, 1)
			go func() {
				l, err := b.Mutex("x").Acquire(within(t))
				if err != nil {
					t.Error(err)
				}
				granted <- l
			}()
			return handOn{release: func() { release(t, held) }, granted: func() (end func()) {
				l := <-granted
				return func() { release(t, l) }
			}}
		})
		holders, waiters = link(), link()
		c, d := dialRaw(t, holders.Addr(), 10*time.Second), dialRaw(t, waiters.Addr(), 10*time.Second)
		theirs := handOns(t, way, waiters, func() handOn {
			first, second := zk.NewLock(c, root+"/zk", zk.WorldACL(zk.PermAll)), zk.NewLock(d, root+"/zk", zk.WorldACL(zk.PermAll))
			if err := first.Lock(); err != nil {
				t.Fatal(err)
			}
			granted := make(chan error, 1)
			go func() { granted <- second.Lock() }()
			unlock := func(l *zk.Lock) {
				if err := l.Unlock(); err != nil {
					t.Error(err)
				}
			}
			return handOn{release: func() { unlock(first) }, granted: func() (end func()) {
				if err := <-granted; err != nil {
					t.Error(err)
				}
				return func() { unlock(second) }
			}}
		})
		t.Logf("one way %v: zklock %v, %v; zk.Lock %v, %v", way, ours.took, ours.requests, theirs.took, theirs.requests)
		if len(ours.requests) > 0 || ours.events != 1 {
			t.Errorf("one way %v: a hand-on cost the next holder the requests %v and %d events, want one event", way, ours.requests, ours.events)
		}
		if len(theirs.requests) == 0 {
			t.Errorf("one way %v: zk.Lock made no request: the test counts nothing", way)
		}
	}
}

// handOn is a lock that one client holds, and for which another one waits.
type handOn struct {
	release func()
	granted func() (end func()) // returns after the grant
}

// handedOn is what the client that waited has needed from the release to its grant.
type handedOn struct {
	took     []time.Duration // of each time
	requests map[string]int  // of the last time, without heartbeats
	events   int
}

// handOns hands a lock on some times, and begins with the release when the waiter's messages have arrived.
func handOns(t *testing.T, way time.Duration, waiters *proxy.Proxy, wait func() handOn) (h handedOn) {
	t.Helper()
	for range 3 {
		next := wait()
		time.Sleep(24 * way)
		before, began := waiters.Counts(), time.Now()
		next.release()
		end := next.granted()
		h.took = append(h.took, time.Since(began).Round(time.Millisecond))
		after := waiters.Counts()
		h.requests, h.events = maps.Clone(after.Requests), after.Events-before.Events
		for kind, n := range before.Requests {
			h.requests[kind] -= n
		}
		maps.DeleteFunc(h.requests, func(kind string, n int) bool { return n == 0 || kind == "ping" })
		end()
	}
	slices.Sort(h.took)
	return h
}
