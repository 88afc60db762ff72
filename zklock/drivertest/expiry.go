package drivertest

import (
	"strconv"

	"github.com/zklock/go-zklock/zklock/driver"
)

func expiryTests() []test {
	return []test{
		{"session/that has expired is so for every method and for ever", func(e *env) {
			s, other := e.connectShort(), e.connect()
			e.create(other, e.path("old"), nil, driver.Persistent)
			_, changed := s.State()
			e.expire(s)
			recv(e, changed, "the state channel to close")
			id := s.ID()
			for range 3 {
				for _, c := range calls(e.root) {
					e.is(c.do(e.ctx, s), driver.ErrSessionExpired, c.name)
				}
				if state, _ := s.State(); state != driver.Expired || s.ID() != id {
					e.Fatalf("expired session %#x is now %#x and %v", id, s.ID(), state)
				}
			}
			// No request may have got through, not even in another session.
			if got, stat := e.names(other, e.root), e.read(other, e.root).Stat; !equal(got, "old") || stat.Version != 0 {
				e.Fatalf("an expired session left %q and version %d", got, stat.Version)
			}
		}},
		{"session/that has expired closes without an error", func(e *env) {
			s := e.connectShort()
			e.expire(s)
			for range 2 {
				e.ok(s.Close(e.ctx), "close")
			}
			if state, _ := s.State(); !state.Final() {
				e.Fatalf("after Close an expired session is %v", state)
			}
		}},
		{"session/that expires takes no other one with it", func(e *env) {
			s, other := e.connectShort(), e.connect()
			e.create(other, e.path("a"), nil, driver.Ephemeral)
			_, events := e.watch(other, e.path("a"))
			e.expire(s)
			e.silent(other, events, e.path("a"), "after the expiry of another session")
			if owner := e.read(other, e.path("a")).Stat.EphemeralOwner; owner != other.ID() {
				e.Fatalf("owner is %#x, want %#x", owner, other.ID())
			}
		}},
		{"ephemeral/nodes are gone after expiry, and only they", func(e *env) {
			s, other := e.connectShort(), e.connect()
			e.create(s, e.path("e"), nil, driver.Ephemeral)
			e.create(s, e.path("p"), nil, driver.Persistent)
			e.create(s, e.path("p/s-"), nil, driver.EphemeralSequential)
			_, events := e.watch(other, e.path("e"))
			e.ok(e.h.Expire(e.ctx, s), "expire the session")
			if got := e.names(other, e.root); !equal(got, "p") {
				e.Fatalf("left after the expiry of the session: %q", got)
			}
			e.fires(events, driver.EventDeleted, e.path("e"))
			if got := e.names(other, e.path("p")); len(got) != 0 {
				e.Fatalf("left after the expiry of the session: %q", got)
			}
		}},
		{"watch/ends with ErrSessionExpired when its session expires", func(e *env) {
			s, other := e.connectShort(), e.connect()
			e.create(other, e.path("a"), nil, driver.Persistent)
			e.create(other, e.path("b"), nil, driver.Persistent)
			_, a := e.watch(s, e.path("a"))
			_, b := e.watch(s, e.path("b"))
			e.expire(s)
			e.endsWith(a, driver.ErrSessionExpired, e.path("a"))
			e.endsWith(b, driver.ErrSessionExpired, e.path("b"))
		}},
		{"conn/request that waits for a connection ends with the session", func(e *env) {
			s, other := e.connectShort(), e.connect()
			heal := e.cut(s)
			done := make(chan error, 1)
			go func() {
				_, err := s.Create(e.ctx, e.path("a"), nil, driver.Persistent, everyone())
				done <- err
			}()
			e.ok(e.h.Expire(e.ctx, s), "expire the session")
			heal()
			e.is(recv(e, done, "the request to end with its session"), driver.ErrSessionExpired, "create")
			e.reaches(s, driver.Expired)
			e.absent(other, e.path("a"))
		}},
	}
}

func containerTests() []test {
	return []test{
		{"container/holds data and belongs to no session", func(e *env) {
			s := e.connectContainers()
			if got := e.create(s, e.path("c"), []byte("x"), driver.Container); got != e.path("c") {
				e.Fatalf("create returned %q", got)
			}
			// Servers mark a container by an owner with the highest bit set,
			// and do not show that mark to their clients.
			node := e.read(s, e.path("c"))
			if node.Stat.EphemeralOwner != 0 || string(node.Data) != "x" || e.set(s, e.path("c"), "y").Version != 1 {
				e.Fatalf("container with data %q: %+v", node.Data, node.Stat)
			}
		}},
		{"container/that exists is ErrNodeExists", func(e *env) {
			s := e.connectContainers()
			e.create(s, e.path("c"), nil, driver.Container)
			e.create(s, e.path("p"), nil, driver.Persistent)
			for _, path := range []string{e.path("c"), e.path("p")} {
				_, err := s.Create(e.ctx, path, nil, driver.Container, everyone())
				e.is(err, driver.ErrNodeExists, "create")
			}
			_, err := s.Create(e.ctx, e.path("missing/c"), nil, driver.Container, everyone())
			e.is(err, driver.ErrNoNode, "create under a missing parent")
		}},
		{"container/takes children of every mode", func(e *env) {
			s := e.connectContainers()
			e.create(s, e.path("c"), nil, driver.Container)
			for i, mode := range []driver.Mode{driver.Persistent, driver.Ephemeral, driver.PersistentSequential, driver.EphemeralSequential, driver.Container} {
				e.create(s, e.path("c/")+strconv.Itoa(i)+"-", nil, mode)
			}
			if stat := e.read(s, e.path("c")).Stat; stat.NumChildren != 5 {
				e.Fatalf("container with five children: %+v", stat)
			}
		}},
		{"container/outlives the session that made it", func(e *env) {
			s, other := e.connectContainers(), e.connect()
			e.create(s, e.path("c"), nil, driver.Container)
			e.ok(s.Close(e.ctx), "close")
			e.read(other, e.path("c"))
		}},
		{"container/is removed once empty, but not before its first child nor while it has one", func(e *env) {
			s := e.connectContainers()
			e.create(s, e.path("unused"), nil, driver.Container)
			e.create(s, e.path("used"), nil, driver.Container)
			e.create(s, e.path("used/child"), nil, driver.Ephemeral)
			e.create(s, e.path("plain"), nil, driver.Persistent)
			e.create(s, e.path("plain/child"), nil, driver.Persistent)
			e.delete(s, e.path("plain/child"))
			// Two containers that go one after the other: the ensemble has
			// looked at the others meanwhile.
			for _, name := range []string{"first", "second"} {
				e.create(s, e.path(name), nil, driver.Container)
				e.delete(s, e.create(s, e.path(name)+"/n-", nil, driver.EphemeralSequential))
				e.until("the empty container is removed", func() bool { return !e.exists(s, e.path(name)) })
			}
			if got := e.names(s, e.root); !equal(got, "plain", "unused", "used") {
				e.Fatalf("left are %q", got)
			}
			_, events := e.watch(s, e.path("used"))
			e.delete(s, e.path("used/child"))
			e.fires(events, driver.EventDeleted, e.path("used"))
		}},
	}
}

// connectContainers is connect for a test on containers, which it skips when
// the ensemble has none.
func (e *env) connectContainers() driver.Session {
	e.Helper()
	if e.h.Reaping() == 0 {
		e.skip("the harness's ensemble has no containers, or reaps them too slowly")
	}
	return e.connect()
}
