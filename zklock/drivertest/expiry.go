package drivertest

import (
	"strconv"

	"github.com/zklock/go-zklock/zklock/driver"
)

func expiryTests() []test {
	return []test{
		{"session/that has expired fails every request, for ever", func(e *env) {
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
					e.Fatalf("the expired session %#x now has the id %#x and the state %v", id, s.ID(), state)
				}
			}
			// No request may have been executed, not even in another session.
			if got, stat := e.names(other, e.root), e.read(other, e.root).Stat; !equal(got, "old") || stat.Version != 0 {
				e.Fatalf("requests on an expired session have changed the children to %q and the version to %d", got, stat.Version)
			}
		}},
		{"session/that has expired closes without an error", func(e *env) {
			s := e.connectShort()
			e.expire(s)
			for range 2 {
				e.ok(s.Close(e.ctx), "close")
			}
			if state, _ := s.State(); !state.Final() {
				e.Fatalf("after Close an expired session is %v, want expired or closed", state)
			}
		}},
		{"session/that expires does not end another one", func(e *env) {
			s, other := e.connectShort(), e.connect()
			e.create(other, e.path("a"), nil, driver.Ephemeral)
			_, events := e.watch(other, e.path("a"))
			e.expire(s)
			e.silent(other, events, e.path("a"), "after the expiry of another session")
			if owner := e.read(other, e.path("a")).Stat.EphemeralOwner; owner != other.ID() {
				e.Fatalf("the node's owner is %#x, want %#x", owner, other.ID())
			}
		}},
		{"ephemeral/nodes, and no others, are gone after expiry", func(e *env) {
			s, other := e.connectShort(), e.connect()
			e.create(s, e.path("e"), nil, driver.Ephemeral)
			e.create(s, e.path("p"), nil, driver.Persistent)
			e.create(s, e.path("p/s-"), nil, driver.EphemeralSequential)
			_, events := e.watch(other, e.path("e"))
			e.ok(e.h.Expire(e.ctx, s), "expire the session")
			if got := e.names(other, e.root); !equal(got, "p") {
				e.Fatalf("the nodes left after the expiry of the session are %q, want only p", got)
			}
			e.fires(events, driver.EventDeleted, e.path("e"))
			if got := e.names(other, e.path("p")); len(got) != 0 {
				e.Fatalf("the children of p left after the expiry of the session are %q, want none", got)
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
			// A server marks a container by an owner with the highest bit set. It does
			// not show that mark to its clients.
			node := e.read(s, e.path("c"))
			if node.Stat.EphemeralOwner != 0 || string(node.Data) != "x" || e.set(s, e.path("c"), "y").Version != 1 {
				e.Fatalf("the container has data %q and stat %+v", node.Data, node.Stat)
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
				e.Fatalf("a container with five children has the stat %+v", stat)
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
			// Two containers are removed one after the other. So the ensemble has
			// checked the other nodes, too, in the meantime.
			for _, name := range []string{"first", "second"} {
				e.create(s, e.path(name), nil, driver.Container)
				e.delete(s, e.create(s, e.path(name)+"/n-", nil, driver.EphemeralSequential))
				e.until("the empty container is removed", func() bool { return !e.exists(s, e.path(name)) })
			}
			if got := e.names(s, e.root); !equal(got, "plain", "unused", "used") {
				e.Fatalf("the nodes left are %q, want plain, unused and used", got)
			}
			_, events := e.watch(s, e.path("used"))
			e.delete(s, e.path("used/child"))
			e.fires(events, driver.EventDeleted, e.path("used"))
		}},
		{"container/that a transaction has created is removed in the same way", func(e *env) {
			s := e.connectContainers()
			if !e.canMake(s) {
				e.skip("the driver or the server cannot create a container in a transaction")
			}
			e.multi(s, persistent(e.path("plain")), persistent(e.path("plain/child")), container(e.path("unused")))
			e.delete(s, e.path("plain/child"))
			for _, name := range []string{"first", "second"} {
				results := e.multi(s, container(e.path(name)), driver.CreateOp(e.path(name)+"/n-", nil, driver.EphemeralSequential, everyone()))
				e.delete(s, results[1].Path)
				e.until("the empty container is removed", func() bool { return !e.exists(s, e.path(name)) })
			}
			if got := e.names(s, e.root); !equal(got, "plain", "unused") {
				e.Fatalf("the nodes left are %q, want plain and unused", got)
			}
		}},
	}
}

// connectContainers opens a session for a test on containers. It skips the test if the
// ensemble has none.
func (e *env) connectContainers() driver.Session {
	e.Helper()
	if e.h.Reaping() == 0 {
		e.skip("the harness's ensemble has no containers, or removes them too slowly")
	}
	return e.connect()
}
