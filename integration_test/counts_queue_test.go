package integration_test

import (
	"cmp"
	"maps"
	"strconv"
	"testing"

	zookeeper "github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// queued returns when a waiter has sent these requests since before: all that it sends while it waits.
func queued(t *testing.T, c counted, before proxy.Counts, all map[string]int) {
	t.Helper()
	eventually(t, "the waiter has sent what it sends while it waits", func() bool { return maps.Equal(c.since(before).requests, all) })
}

// packets returns how many a cost has on the wire: requests, replies and events.
func (c cost) packets() int { return 2*total(c.requests) + c.events }

// zkLockCosts returns the costs of a cycle of go-zookeeper's zk.Lock, by how many contenders were ahead.
func zkLockCosts(t *testing.T, zk *ensemble.Ensemble, clients int) (costs []cost) {
	t.Helper()
	var fleet []counted
	var locks []*zookeeper.Lock
	var held []chan error
	for range clients {
		c, conn := countedRaw(t, zk.Server(0))
		l := zookeeper.NewLock(conn, "/fleet", zookeeper.WorldACL(zookeeper.PermAll))
		if err := cmp.Or(l.Lock(), l.Unlock()); err != nil { // as the name's znode is known in later cycles
			t.Fatal(err)
		}
		fleet, locks = append(fleet, c), append(locks, l)
	}
	var before []proxy.Counts
	for i, l := range locks {
		before = append(before, fleet[i].proxy.Counts())
		granted := make(chan error, 1)
		held = append(held, granted)
		go func() { granted <- l.Lock() }()
		last := "getData" // of the one ahead
		if i == 0 {
			last = "getChildren2"
		}
		eventually(t, "the waiter has sent what it sends while it waits", func() bool { return fleet[i].since(before[i]).requests[last] == 1 })
	}
	for i, l := range locks {
		if err := cmp.Or(<-held[i], l.Unlock()); err != nil {
			t.Fatal(err)
		}
		costs = append(costs, fleet[i].since(before[i]))
	}
	return costs
}

// A cycle in which the lock is waited for costs the server at most the packets of zk.Lock. Where more than one contender was ahead
// they are as many. Where one was, and the wait lasts longer than a list, there is one event more, and no request between
// the release and the grant.
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
	peer := zkLockCosts(t, zk, len(clients))
	for i, c := range clients {
		release(t, locks[i].must(t))
		want, more := cost{map[string]int{"multi": 1, "getChildren2": 2, "getData": 1, "delete": 1}, enqueuing, 1}, 0
		switch i {
		case 0:
			want = cost{map[string]int{"multi": 1, "delete": 1}, enqueuing, 0}
		case 1: // the event of its own node comes before the reply to its delete
			want, more = cost{map[string]int{"multi": 1, "getChildren2": 1, "getData": 2, "delete": 1}, enqueuing, 2}, 1
		}
		got := c.since(before[i])
		if !got.equal(want) {
			t.Errorf("%d ahead: %v, want %v", i, got, want)
		}
		if t.Logf("%d ahead: %d packets, zk.Lock %d", i, got.packets(), peer[i].packets()); got.packets() > peer[i].packets()+more {
			t.Errorf("%d ahead: %d packets, zk.Lock has %d: %v", i, got.packets(), peer[i].packets(), peer[i])
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
