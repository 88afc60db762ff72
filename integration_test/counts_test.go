package integration_test

import (
	"fmt"
	"maps"
	"net/url"
	"testing"
	"time"

	zookeeper "github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// cost has the numbers of requests that some calls sent to the ensemble, except pings, and
// of the watch events that came back. It has no heartbeats: with a session timeout of
// minutes, no heartbeat is due while a test runs.
type cost struct {
	requests map[string]int // by ZooKeeper's name of the operation
	multis   map[string]int // the transactions among them, by the operations in them
	events   int
}

func (c cost) equal(d cost) bool {
	return maps.Equal(c.requests, d.requests) && maps.Equal(c.multis, d.multis) && c.events == d.events
}

// and returns the sum of two costs.
func (c cost) and(d cost) cost {
	sum := cost{maps.Clone(c.requests), maps.Clone(c.multis), c.events + d.events}
	for k, n := range d.requests {
		sum.requests[k] += n
	}
	for k, n := range d.multis {
		sum.multis[k] += n
	}
	return sum
}

func (c cost) String() string {
	return fmt.Sprintf("requests %v, transactions %v, events %d", c.requests, c.multis, c.events)
}

// counted is a client whose requests are counted on their way to the server.
type counted struct {
	*zklock.Client
	proxy *proxy.Proxy
}

// since returns the cost since old was taken.
func (c counted) since(old proxy.Counts) cost {
	d := c.proxy.Counts().Sub(old)
	delete(d.Requests, "ping")
	return cost{d.Requests, d.Multis, d.Events}
}

// costOf calls f and returns its cost.
func (c counted) costOf(f func()) cost {
	before := c.proxy.Counts()
	f()
	return c.since(before)
}

func total(m map[string]int) int {
	n := 0
	for _, k := range m {
		n += k
	}
	return n
}

// calmTimeout is a session timeout so long that a client sends no heartbeats during a test. A waiter
// begins to watch its own node after a fortieth of it, and so not during a test, unless it is the only one
// that waits: see queued.
const calmTimeout = 24 * time.Hour

// calm starts a server that allows the clients of calmDial their session timeout.
func calm(t *testing.T) *ensemble.Ensemble {
	t.Helper()
	ensemble.Require(t)
	return ensemble.Start(t, ensemble.Config{MaxSessionTimeout: calmTimeout})
}

// calmDial opens a client with one session, and opens that session.
func calmDial(t *testing.T, zk *ensemble.Ensemble, opts ...zklock.Option) counted {
	t.Helper()
	return calmDialWith(t, zk.Server(0), slow(), opts...)
}

// slow returns the settings of calmDial, and those that are given.
func slow(kv ...string) url.Values {
	return quick(append([]string{"session_timeout", calmTimeout.String(), "pool_max_sessions", "1"}, kv...)...)
}

// calmDialWith is calmDial for a client of one server of several, with these settings.
func calmDialWith(t *testing.T, s *ensemble.Server, settings url.Values, opts ...zklock.Option) counted {
	t.Helper()
	p, err := proxy.NewCounting(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() }) // after the client is closed
	c := dial(t, p.Addr(), settings, opts...)
	if err := c.Ping(within(t)); err != nil {
		t.Fatal(err)
	}
	return counted{c, p}
}

// countedRaw opens a plain ZooKeeper session, whose requests are counted.
func countedRaw(t *testing.T, s *ensemble.Server) (counted, *zookeeper.Conn) {
	t.Helper()
	p, err := proxy.NewCounting(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() }) // after the session is closed
	return counted{nil, p}, dialRaw(t, p.Addr(), calmTimeout)
}

var (
	nothing   = cost{map[string]int{}, map[string]int{}, 0}
	oneMulti  = map[string]int{"multi": 1}
	enqueuing = map[string]int{"create+setData": 1}

	refusedFirst = map[string]int{"create+setData": 2}

	oneDelete = cost{map[string]int{"delete": 1}, map[string]int{}, 0} // a lone delete is not a transaction
)

func TestUncontendedAcquireAndReleaseAreOneRequestEach(t *testing.T) {
	t.Parallel()
	zk := calm(t)
	c, other := calmDial(t, zk), calmDial(t, zk)
	var l *zklock.Lock
	for _, step := range []struct {
		what string
		do   func()
		want cost
	}{
		{"Acquire of a new name", func() { l = acquire(t, c.Mutex("a")) }, cost{oneMulti, enqueuing, 0}}, // with its znode
		{"Release", func() { release(t, l) }, oneDelete},
		{"Acquire of a known name", func() { l = acquire(t, c.Mutex("a")) }, cost{oneMulti, enqueuing, 0}},
		{"Release again", func() { release(t, l) }, oneDelete},
		{"second Release", func() { _ = l.Release(within(t)) }, nothing},
		{"Acquire of another new name", func() { l = acquire(t, c.Mutex("b/c")) }, cost{oneMulti, enqueuing, 0}},
		{"TryAcquire of a name held by this client", func() { _, _ = c.Mutex("b/c").TryAcquire(within(t)) }, nothing},
		{"Valid, Until, Token and Err", func() { _, _, _, _ = l.Valid(), l.Until(), l.Token(), l.Err() }, nothing},
		{"Verify", func() { _ = l.Verify(within(t)) }, cost{oneMulti, map[string]int{"check": 1}, 0}},
		{"Release of that", func() { release(t, l) }, oneDelete},
	} {
		if got := c.costOf(step.do); !got.equal(step.want) {
			t.Errorf("%s: %v, want %v", step.what, got, step.want)
		}
	}

	// However often a name is used, its cycles cost the same.
	for range 20 {
		if got := c.costOf(func() { l = acquire(t, c.Mutex("a")) }); !got.equal(cost{oneMulti, enqueuing, 0}) {
			t.Errorf("Acquire of a name in use: %v, want %v", got, enqueuing)
		}
		if got := c.costOf(func() { release(t, l) }); !got.equal(oneDelete) {
			t.Errorf("Release of a name in use: %v, want %v", got, oneDelete)
		}
	}

	// Another client has created the znode of the name. The first transaction, which would create
	// it, is refused. So the client must read the znode once.
	read := cost{map[string]int{"getData": 1, "multi": 2}, refusedFirst, 0}
	if got := other.costOf(func() { l = acquire(t, other.Mutex("a")) }); !got.equal(read) {
		t.Errorf("Acquire of a name first seen here: %v, want %v", got, read)
	}
	list := cost{map[string]int{"getChildren2": 1}, map[string]int{}, 0}
	if got := c.costOf(func() { _, _ = c.Mutex("a").TryAcquire(within(t)) }); !got.equal(list) {
		t.Errorf("TryAcquire of a name held by another client: %v, want %v", got, list)
	}
	if got := other.costOf(func() { release(t, l) }); !got.equal(oneDelete) {
		t.Errorf("Release of it: %v", got)
	}
}
