package integration_test

import (
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"testing"
	"time"

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

// queued returns when a waiter has sent these requests since before: all that it sends while it waits.
func queued(t *testing.T, c counted, before proxy.Counts, all map[string]int) {
	t.Helper()
	eventually(t, "the waiter has sent what it sends while it waits", func() bool { return maps.Equal(c.since(before).requests, all) })
}

// A cycle in which the lock is waited for costs the server at most the packets of go-zookeeper's zk.Lock: requests,
// replies and events. Where more than one contender was ahead they are the same. Where one was, and the wait lasts
// longer than a list, there is one event more, and no request between the release and the grant.
func TestContendedCycleCostsAsMuchAsZkLock(t *testing.T) {
	t.Parallel()
	zk := calm(t)
	hooks, waiting := waits()
	var clients []counted
	var locks []*attempt
	var before []proxy.Counts
	for i := range 5 {
		c := calmDial(t, zk, zklock.WithHooks(hooks))
		release(t, acquire(t, c.Mutex("own"+strconv.Itoa(i)))) // as the name's znode is known in later cycles
		release(t, acquire(t, c.Mutex("fleet")))
		clients = append(clients, c)
	}
	for i, c := range clients {
		before = append(before, c.proxy.Counts())
		locks = append(locks, try(t, within(t), c.Mutex("fleet")))
		switch i {
		case 0:
			locks[0].must(t) // before the others come
		case 1:
			receive(t, "a waiter", waiting)
			queued(t, c, before[1], map[string]int{"multi": 1, "getChildren2": 1, "getData": 2})
		default:
			receive(t, "a waiter", waiting)
		}
	}
	for i, c := range clients {
		release(t, locks[i].must(t))
		want := cost{map[string]int{"multi": 1, "getChildren2": 2, "getData": 1, "delete": 1}, enqueuing, 1}
		switch i {
		case 0:
			want = cost{map[string]int{"multi": 1, "delete": 1}, enqueuing, 0}
		case 1: // the event of its own node comes before the reply to its delete
			want = cost{map[string]int{"multi": 1, "getChildren2": 1, "getData": 2, "delete": 1}, enqueuing, 2}
		}
		if got := c.since(before[i]); !got.equal(want) {
			t.Errorf("%d ahead: %v, want %v", i, got, want)
		}
	}
}

// TestReleaseWakesOneOfFiftyClients counts the requests of each client separately. So it
// shows which clients were woken, not only how many.
func TestReleaseWakesOneOfFiftyClients(t *testing.T) {
	t.Parallel()
	zk := calm(t)
	const waiters = 50
	hooks, waiting := waits()
	clients := []counted{calmDial(t, zk)}
	held := acquire(t, clients[0].Mutex("herd"))
	attempts := []*attempt{nil}
	for i := 1; i <= waiters; i++ {
		c := calmDial(t, zk, zklock.WithHooks(hooks))
		before := c.proxy.Counts()
		attempts = append(attempts, try(t, within(t), c.Mutex("herd")))
		receive(t, "the next waiter", waiting)
		// The client must read the name's znode, since another client created it. Then it
		// enters the queue, lists it, and watches the contender ahead.
		want := cost{map[string]int{"getData": 2, "multi": 2, "getChildren2": 1}, refusedFirst, 0}
		if i == 1 { // the only one that waits also watches its own node
			want.requests["getData"]++
			queued(t, c, before, want.requests)
		}
		if got := c.since(before); !got.equal(want) {
			t.Errorf("waiter %d: %v, want %v", i, got, want)
		}
		clients = append(clients, c)
	}

	// The reply to a Ping arrives after everything that the server has sent before. So
	// the test need not wait any longer. checked takes a Ping's requests out of a cost.
	checked := func(got cost) cost {
		for _, n := range []struct {
			m   map[string]int
			key string
			k   int
		}{{got.requests, "multi", 1}, {got.requests, "createContainer", 1}, {got.multis, "check+create+setData+delete", 1}} {
			if n.m[n.key] -= n.k; n.m[n.key] == 0 {
				delete(n.m, n.key)
			}
		}
		return got
	}
	for i := range waiters {
		before := make([]proxy.Counts, len(clients))
		for j, c := range clients {
			before[j] = c.proxy.Counts()
		}
		release(t, held)
		next := attempts[i+1].must(t)
		if next.Token().Compare(held.Token()) <= 0 {
			t.Errorf("token %v after %v, want a greater one", next.Token(), held.Token())
		}
		held = next
		for j, c := range clients {
			if c.Client == nil {
				continue
			}
			if err := c.Ping(within(t)); err != nil {
				t.Fatal(err)
			}
			got := checked(c.since(before[j]))
			ok, want := got.equal(nothing), "nothing"
			switch {
			case j == i: // the only one that waited watches its own node
				own := 0
				if i == 1 {
					own = 1
				}
				ok, want = got.equal(cost{oneDelete.requests, oneDelete.multis, own}), "one delete and, if it watched its own node, that event"
			case j == 1 && i == 0: // the event is enough for the only one that waited at first
				ok, want = got.equal(cost{nothing.requests, nothing.multis, 1}), "one event"
			case j == i+1: // a writer that had two ahead reads the first of them and its own node; else it lists both in one
				reads := got.requests["getData"] + got.requests["getChildren2"]
				ok, want = got.events == 1 && reads == total(got.requests) && (reads == 1 || reads == 2 && i == 1), "one event and one list"
			}
			if !ok {
				t.Errorf("release by client %d: client %d: %v, want %s", i, j, got, want)
			}
			if j > i+1 {
				attempts[j].pending(t)
			}
		}
		if t.Failed() {
			t.FailNow() // the other releases would fail in the same way
		}
		if i > 0 {
			// It has seen two releases that do not concern it. If it stayed, it would try to remove the
			// name's container ten seconds after its own use.
			if err := clients[i-1].Close(); err != nil {
				t.Error(err)
			}
			clients[i-1].Client = nil
		}
	}
	release(t, held)
}
