package integration_test

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

const (
	manyNodes = 1000

	// growth is the number of additional objects on the heap that all reconnects may
	// leave, compared with the first few. One object for each node and reconnect would
	// be 7,000 at least.
	growth = 5 * manyNodes
)

// objects returns the number of objects on the heap after garbage collection.
func objects() int64 {
	var m runtime.MemStats
	for range 3 { // the second call frees the objects in pools; finalizers need another one
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapObjects)
}

// flatOverReconnects resets the connections of a proxy many times. Each time it first calls intact, and
// then restored, which waits until the client has read and watched its nodes again. It fails the
// test if the number of objects or goroutines grows.
func flatOverReconnects(t *testing.T, link *proxy.Proxy, intact func(), restored func(reconnects int)) {
	t.Helper()
	const first = 5
	reconnects := long.Count(t, "ZKLOCK_RECONNECTS", first+7, 30)
	var heap int64
	var goroutines int
	for n := 1; n <= reconnects; n++ {
		intact()
		link.KillConns()
		restored(n)
		if n == first {
			heap, goroutines = objects(), runtime.NumGoroutine()
		}
	}
	if more := objects() - heap; more > growth {
		t.Errorf("%d reconnects with %d nodes to watch left %d additional objects on the heap, want at most %d",
			reconnects-first, manyNodes, more, growth)
	}
	if more := runtime.NumGoroutine() - goroutines; more > manyNodes/10 {
		t.Errorf("%d reconnects left %d additional goroutines, want at most %d", reconnects-first, more, manyNodes/10)
	}
}

// link returns a proxy to the shared server. It is closed at the end of the test.
func link(t *testing.T) *proxy.Proxy {
	t.Helper()
	p, err := proxy.NewCounting(sharedEnsemble(t).Server(0).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// TestMemoryOfWatchesIsFlatOverReconnects: a program that watches its nodes again after
// each reconnect, as package zklock does, gets each change once, and its memory does not
// grow.
func TestMemoryOfWatchesIsFlatOverReconnects(t *testing.T) {
	long.Test(t, "it measures memory")
	p := link(t)
	connect := func(host string) driver.Session {
		c, err := zkdriver.Driver{}.OpenConnector(driver.URL{Scheme: "zk", Hosts: []string{host}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		s, err := c.Connect(within(t), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(within(t)) })
		return s
	}
	other, s := connect(sharedEnsemble(t).Server(0).Addr()), connect(p.Addr())
	root := rootOf(t)
	open := driver.OpenACL(driver.PermAll)
	if _, err := other.Create(within(t), root, nil, driver.Persistent, open); err != nil {
		t.Fatal(err)
	}
	path := func(i int) string { return root + "/" + strconv.Itoa(i) }
	events := make([]<-chan driver.Event, manyNodes)
	watch := func() {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var wg sync.WaitGroup
		for part := range 16 {
			wg.Go(func() {
				for i := part; i < manyNodes; i += 16 {
					var err error
					if _, events[i], err = s.Watch(ctx, path(i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		if wg.Wait(); t.Failed() {
			t.FailNow()
		}
	}
	for i := range events {
		if _, err := other.Create(within(t), path(i), nil, driver.Persistent, open); err != nil {
			t.Fatal(err)
		}
	}
	watch()
	flatOverReconnects(t, p, func() {}, func(n int) {
		for gen, _ := s.Conn(); gen <= uint64(n); gen, _ = s.Conn() {
			_, changed := s.State()
			if gen, _ = s.Conn(); gen <= uint64(n) {
				receive(t, "a reconnect", changed)
			}
		}
		watch()
	})
	for i, ch := range events {
		if err := other.Delete(within(t), path(i), driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		if ev := receive(t, "an event", ch); ev.Type != driver.EventDeleted || ev.Path != path(i) {
			t.Errorf("%s: event %+v", path(i), ev)
		}
		if ev, more := <-ch; more {
			t.Errorf("%s: a second event: %+v", path(i), ev)
		}
	}
	if got := p.Counts().Events; got != manyNodes {
		t.Errorf("the server sent %d events, want one for each of %d nodes", got, manyNodes)
	}
}

// TestMemoryOfHeldLocksIsFlatOverReconnects holds locks through one proxy, which resets its
// connections many times. A client that keeps its session and its locks must not grow.
func TestMemoryOfHeldLocksIsFlatOverReconnects(t *testing.T) {
	long.Test(t, "a thousand locks are held over thirty reconnects")
	p := link(t)
	c := dial(t, p.Addr(), keys("session_timeout", "10s", "tick_time", "500ms", "pool_max_sessions", "1"))
	locks := make([]*zklock.Lock, manyNodes)
	for i := range locks {
		locks[i] = acquire(t, c.Mutex(strconv.Itoa(i)))
	}
	reads := func() int { return p.Counts().Requests["getData"] }
	eventually(t, "every lock's node is watched", func() bool { return reads() >= manyNodes })
	before := 0
	flatOverReconnects(t, p, func() { before = reads() }, func(int) {
		eventually(t, "every lock's node is watched again", func() bool { return reads()-before >= manyNodes })
	})
	for _, l := range locks {
		if err := l.Err(); err != nil {
			t.Fatal(err)
		}
		release(t, l)
	}
}

// TestMemoryOfASession: a session takes about 2.6 MB, as docs/operations.md says: 1.5 MiB for
// the client's read buffer, and 1 MiB for its write buffer.
func TestMemoryOfASession(t *testing.T) {
	const sessions, least, most = 16, 3 << 19, 13 << 18 // bytes; the lower bound is low, since sessions of earlier tests may end during the measurement
	hosts := sharedEnsemble(t).Hosts()
	heap := func() int64 {
		var m runtime.MemStats
		objects() // collects the garbage
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	release(t, acquire(t, dial(t, hosts, quick()).Mutex("first"))) // what all clients share
	before := heap()
	var clients []*zklock.Client
	for range sessions {
		c := dial(t, hosts, quick("pool_max_sessions", "1"))
		release(t, acquire(t, c.Mutex("x")))
		clients = append(clients, c)
	}
	each := (heap() - before) / sessions
	runtime.KeepAlive(clients)
	t.Logf("%d bytes for each of %d sessions", each, sessions)
	if each < least || each > most {
		t.Errorf("a session takes %d bytes, want %d to %d", each, least, most)
	}
}
