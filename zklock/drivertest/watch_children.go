package drivertest

import (
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

func watchChildrenTests() []test {
	return []test{
		{"watchchildren/lists the children as children does", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.create(s, e.path("a/x"), nil, driver.Persistent)
			e.create(s, e.path("a/y"), nil, driver.Ephemeral)
			names, stat, _, err := s.WatchChildren(e.ctx, e.path("a"))
			e.ok(err, "watch children")
			slices.Sort(names)
			_, want, err := s.Children(e.ctx, e.path("a"))
			e.ok(err, "children")
			if !slices.Equal(names, []string{"x", "y"}) || stat != want {
				e.Fatalf("listed %q and %+v, want x and y, and %+v", names, stat, want)
			}
		}},
		{"watchchildren/of a missing node is ErrNoNode and arms nothing", func(e *env) {
			s := e.connect()
			_, _, events, err := s.WatchChildren(e.ctx, e.path("a"))
			e.is(err, driver.ErrNoNode, "watch the children of a missing node")
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.create(s, e.path("a/x"), nil, driver.Persistent)
			if events != nil {
				e.silent(s, events, e.path("a"), "after changes of a node that did not exist when it was watched")
			}
		}},
		{"watchchildren/fires once when another session creates a child", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, events := e.watchChildren(s, e.path("a"))
			e.create(other, e.path("a/x"), nil, driver.Ephemeral)
			e.create(other, e.path("a/y"), nil, driver.Ephemeral)
			e.fires(events, driver.EventChildren, e.path("a"))
		}},
		{"watchchildren/fires once when another session deletes a child", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.create(s, e.path("a/x"), nil, driver.Persistent)
			_, events := e.watchChildren(s, e.path("a"))
			e.delete(other, e.path("a/x"))
			e.fires(events, driver.EventChildren, e.path("a"))
		}},
		{"watchchildren/fires when the session that owns a child closes", func(e *env) {
			s, owner := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.create(owner, e.path("a/x"), nil, driver.Ephemeral)
			_, events := e.watchChildren(s, e.path("a"))
			e.ok(owner.Close(e.ctx), "close")
			e.fires(events, driver.EventChildren, e.path("a"))
		}},
		{"watchchildren/fires when a multi creates or deletes a child", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, events := e.watchChildren(s, e.path("a"))
			e.multi(other, persistent(e.path("a/x")), driver.SetOp(e.path("a"), nil, driver.AnyVersion))
			e.fires(events, driver.EventChildren, e.path("a"))
			_, events = e.watchChildren(s, e.path("a"))
			e.multi(other, driver.DeleteOp(e.path("a/x"), driver.AnyVersion), driver.SetOp(e.path("a"), nil, driver.AnyVersion))
			e.fires(events, driver.EventChildren, e.path("a"))
		}},
		{"watchchildren/fires as deleted when the node itself is deleted", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, events := e.watchChildren(s, e.path("a"))
			e.delete(other, e.path("a"))
			e.fires(events, driver.EventDeleted, e.path("a"))
		}},
		{"watchchildren/does not fire for data, grandchildren or failed changes", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.create(s, e.path("a/x"), nil, driver.Persistent)
			_, events := e.watchChildren(s, e.path("a"))
			e.set(other, e.path("a"), "data")
			e.set(other, e.path("a/x"), "data")
			e.create(other, e.path("a/x/y"), nil, driver.Persistent)
			e.delete(other, e.path("a/x/y"))
			e.create(other, e.path("b"), nil, driver.Persistent)
			_, err := other.Create(e.ctx, e.path("a/x"), nil, driver.Persistent, everyone())
			e.is(err, driver.ErrNodeExists, "create of a node that exists")
			_, err = other.Multi(e.ctx, []driver.Op{persistent(e.path("a/z")), driver.CheckOp(e.path("a"), 7)})
			e.is(err, driver.ErrBadVersion, "multi with a check of another version")
			e.silent(s, events, e.path("a"), "after changes of other things")
			e.create(other, e.path("a/w"), nil, driver.Persistent)
			e.fires(events, driver.EventChildren, e.path("a"))
		}},
		{"watchchildren/and a watch on the same node fire independently", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, data := e.watch(s, e.path("a"))
			_, children := e.watchChildren(s, e.path("a"))
			e.create(other, e.path("a/x"), nil, driver.Persistent)
			e.fires(children, driver.EventChildren, e.path("a"))
			e.silent(s, data, e.path("a"), "after the creation of a child")
			_, children = e.watchChildren(s, e.path("a"))
			e.set(other, e.path("a"), "x")
			e.fires(data, driver.EventChanged, e.path("a"))
			e.silent(s, children, e.path("a"), "after a set of the data")
			_, data = e.watch(s, e.path("a"))
			e.multi(other, driver.DeleteOp(e.path("a/x"), driver.AnyVersion), driver.DeleteOp(e.path("a"), driver.AnyVersion))
			e.fires(data, driver.EventDeleted, e.path("a"))
			// The transaction has deleted a child, too: either event says that the list is old.
			event := recv(e, children, "the watch on the children")
			if event.Err != nil || event.Type != driver.EventChildren && event.Type != driver.EventDeleted {
				e.Fatalf("the watch on the children delivered %+v", event)
			}
			e.ends(children)
		}},
		{"watchchildren/delivers an event before the result of a later transaction", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			for i := range 100 {
				_, events := e.watchChildren(s, e.path("a"))
				if i%2 == 0 {
					e.create(other, e.path("a/x"), nil, driver.Persistent)
				} else {
					e.delete(other, e.path("a/x"))
				}
				e.multi(s, driver.CreateOp(e.path("later-"), nil, driver.EphemeralSequential, everyone()))
				select {
				case <-events:
				default:
					e.Fatalf("round %d: another session has changed the children, a transaction after that has a result, and the event is not there", i)
				}
			}
		}},
		{"watchchildren/is armed at the moment of its list", func(e *env) {
			e.races(func(s driver.Session, path string) (children bool, events <-chan driver.Event) {
				names, _, events, err := s.WatchChildren(e.ctx, path)
				e.ok(err, "watch children")
				return len(names) > 0, events
			}, driver.EventChildren)
		}},
		{"watchchildren/ends with ErrClosed when its session closes", func(e *env) {
			s := e.connect()
			_, events := e.watchChildren(s, e.root)
			e.ok(s.Close(e.ctx), "close")
			e.endsWith(events, driver.ErrClosed, e.root)
		}},
		{"watchchildren/survives a lost connection", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, events := e.watchChildren(s, e.path("a"))
			e.h.Kill(s)
			e.reconnects(s, 2)
			e.silent(s, events, e.path("a"), "after a reconnect")
			e.create(other, e.path("a/x"), nil, driver.Persistent)
			e.fires(events, driver.EventChildren, e.path("a"))
		}},
		{"watchchildren/fires after a cut for a change meanwhile", func(e *env) {
			s, other := e.connect(), e.connect()
			for _, name := range []string{"made", "left", "gone", "same"} {
				e.create(s, e.path(name), nil, driver.Persistent)
			}
			e.create(s, e.path("left/x"), nil, driver.Persistent)
			_, made := e.watchChildren(s, e.path("made"))
			_, left := e.watchChildren(s, e.path("left"))
			_, gone := e.watchChildren(s, e.path("gone"))
			_, same := e.watchChildren(s, e.path("same"))
			heal := e.cut(s)
			e.create(other, e.path("made/x"), nil, driver.Persistent)
			e.delete(other, e.path("left/x"))
			e.delete(other, e.path("gone"))
			e.set(other, e.path("same"), "data")
			heal()
			e.fires(made, driver.EventChildren, e.path("made"))
			e.fires(left, driver.EventChildren, e.path("left"))
			e.fires(gone, driver.EventDeleted, e.path("gone"))
			e.silent(s, same, e.path("same"), "after a reconnect")
		}},
		{"watchchildren/set again after a reconnect fires once", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			channels := make(map[<-chan driver.Event]bool)
			for gen := uint64(1); gen <= 3; gen++ {
				if gen > 1 {
					e.h.Kill(s)
					e.reconnects(s, gen)
				}
				_, events := e.watchChildren(s, e.path("a"))
				channels[events] = true
			}
			e.create(other, e.path("a/x"), nil, driver.Persistent)
			for events := range channels {
				e.fires(events, driver.EventChildren, e.path("a"))
			}
		}},
		{"watchchildren/without the permission to read is ErrNoAuth", func(e *env) {
			s := e.connect()
			_, err := s.Create(e.ctx, e.path("a"), nil, driver.Persistent, driver.OpenACL(driver.PermAll&^driver.PermRead))
			e.ok(err, "create")
			_, _, _, err = s.WatchChildren(e.ctx, e.path("a"))
			e.is(err, driver.ErrNoAuth, "watch the children of an unreadable node")
		}},
	}
}

// races lets the creation of path/child race with a watch on path or on its child. The watch
// starts a little later in each round, until the creation is always over first. If the read
// does not show the creation, the watch must fire. A driver that arms the watch after the read
// loses some of these events.
func (e *env) races(watch func(s driver.Session, path string) (shown bool, events <-chan driver.Event), want driver.EventType) {
	e.Helper()
	const rounds = 100
	s, other := e.connect(), e.connect()
	path := e.path("a")
	e.create(s, path, nil, driver.Persistent)
	begun := time.Now()
	e.create(other, path+"/child", nil, driver.Persistent)
	e.delete(other, path+"/child")
	e.read(s, path)
	span := time.Since(begun)
	for round := range rounds {
		written := make(chan error, 1)
		go func() {
			_, err := other.Create(e.ctx, path+"/child", nil, driver.Persistent, everyone())
			written <- err
		}()
		timer := time.NewTimer(span * time.Duration(round) / rounds)
		recv(e, timer.C, "a timer")
		shown, events := watch(s, path)
		e.ok(recv(e, written, "the create"), "create")
		if !shown {
			event := recv(e, events, "the watch to fire")
			if event.Type != want {
				e.Fatalf("the watch delivered %+v, want an event of type %v", event, want)
			}
		}
		e.delete(other, path+"/child")
		e.read(s, path) // so that the next round does not read an older state
	}
}
