package drivertest

import "github.com/zklock/go-zklock/zklock/driver"

func watchExistsTests() []test {
	return []test{
		{"watchexists/returns the stat of a node that is there", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), []byte("x"), driver.Ephemeral)
			e.set(s, e.path("a"), "yy")
			stat, _ := e.watchExists(s, e.path("a"), true)
			if want := e.read(s, e.path("a")).Stat; stat != want {
				e.Fatalf("watch exists returned %+v, want %+v", stat, want)
			}
		}},
		{"watchexists/of a missing node fires once when it is created", func(e *env) {
			s, other := e.connect(), e.connect()
			stat, events := e.watchExists(s, e.path("a"), false)
			if stat != (driver.Stat{}) {
				e.Fatalf("the stat of a missing node is %+v", stat)
			}
			e.create(other, e.path("b"), nil, driver.Persistent)
			e.silent(s, events, e.path("a"), "after the creation of another node")
			e.create(other, e.path("a"), nil, driver.Persistent)
			e.set(other, e.path("a"), "x")
			e.delete(other, e.path("a"))
			e.fires(events, driver.EventCreated, e.path("a"))
		}},
		{"watchexists/of a node whose parent is missing fires when it is created", func(e *env) {
			s, other := e.connect(), e.connect()
			_, events := e.watchExists(s, e.path("a/b"), false)
			e.create(other, e.path("a"), nil, driver.Persistent)
			e.silent(s, events, e.path("a/b"), "after the creation of its parent")
			e.multi(other, persistent(e.path("a/b")), driver.CheckOp(e.path("a"), 0))
			e.fires(events, driver.EventCreated, e.path("a/b"))
		}},
		{"watchexists/of a node that is there fires when it is set or deleted", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, events := e.watchExists(s, e.path("a"), true)
			e.create(other, e.path("a/x"), nil, driver.Persistent)
			e.delete(other, e.path("a/x"))
			e.silent(s, events, e.path("a"), "after changes of its children")
			e.set(other, e.path("a"), "x")
			e.fires(events, driver.EventChanged, e.path("a"))
			_, events = e.watchExists(s, e.path("a"), true)
			e.delete(other, e.path("a"))
			e.fires(events, driver.EventDeleted, e.path("a"))
		}},
		{"watchexists/does not fire for a creation that fails", func(e *env) {
			s, other := e.connect(), e.connect()
			_, events := e.watchExists(s, e.path("a"), false)
			_, err := other.Multi(e.ctx, []driver.Op{persistent(e.path("a")), driver.CheckOp(e.root, 7)})
			e.is(err, driver.ErrBadVersion, "multi with a check of another version")
			e.silent(s, events, e.path("a"), "after a creation that failed")
		}},
		{"watchexists/of one node by many calls fires for each", func(e *env) {
			s, other := e.connect(), e.connect()
			_, first := e.watchExists(s, e.path("a"), false)
			_, second := e.watchExists(s, e.path("a"), false)
			e.create(other, e.path("a"), nil, driver.Persistent)
			e.fires(first, driver.EventCreated, e.path("a"))
			e.fires(second, driver.EventCreated, e.path("a"))
			_, first = e.watchExists(s, e.path("a"), true)
			_, second = e.watch(s, e.path("a"))
			_, third := e.watchChildren(s, e.path("a"))
			e.delete(other, e.path("a"))
			for _, events := range []<-chan driver.Event{first, second, third} {
				e.fires(events, driver.EventDeleted, e.path("a"))
			}
		}},
		{"watchexists/without the permission to read answers, or is ErrNoAuth", func(e *env) {
			s := e.connect()
			_, err := s.Create(e.ctx, e.path("a"), nil, driver.Persistent, driver.OpenACL(driver.PermAll&^driver.PermRead))
			e.ok(err, "create")
			// Newer servers refuse to answer about a node that is there.
			if _, found, _, err := s.WatchExists(e.ctx, e.path("a")); err != nil {
				e.is(err, driver.ErrNoAuth, "watch the existence of a node that may not be read")
			} else if !found {
				e.Error("a node that may not be read does not exist, want it to exist")
			}
			e.watchExists(s, e.path("missing"), false)
		}},
		{"watchexists/delivers an event before the result of a later transaction", func(e *env) {
			s, other := e.connect(), e.connect()
			for i := range 100 {
				_, events := e.watchExists(s, e.path("a"), i%2 == 1)
				if i%2 == 0 {
					e.create(other, e.path("a"), nil, driver.Persistent)
				} else {
					e.delete(other, e.path("a"))
				}
				e.multi(s, driver.CreateOp(e.path("later-"), nil, driver.EphemeralSequential, everyone()))
				select {
				case <-events:
				default:
					e.Fatalf("round %d: another session has made or deleted the node, a transaction after that has a result, and the event is not there", i)
				}
			}
		}},
		{"watchexists/is armed at the moment of its answer", func(e *env) {
			e.races(func(s driver.Session, path string) (shown bool, events <-chan driver.Event) {
				_, found, events, err := s.WatchExists(e.ctx, path+"/child")
				e.ok(err, "watch exists")
				return found, events
			}, driver.EventCreated)
		}},
		{"watchexists/ends with ErrClosed when its session closes", func(e *env) {
			s := e.connect()
			_, missing := e.watchExists(s, e.path("a"), false)
			_, there := e.watchExists(s, e.root, true)
			e.ok(s.Close(e.ctx), "close")
			e.endsWith(missing, driver.ErrClosed, e.path("a"))
			e.endsWith(there, driver.ErrClosed, e.root)
		}},
		{"watchexists/survives a lost connection", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("there"), nil, driver.Persistent)
			_, missing := e.watchExists(s, e.path("a"), false)
			_, there := e.watchExists(s, e.path("there"), true)
			e.h.Kill(s)
			e.reconnects(s, 2)
			e.silent(s, missing, e.path("a"), "after a reconnect")
			e.silent(s, there, e.path("there"), "after a reconnect")
			e.create(other, e.path("a"), nil, driver.Persistent)
			e.set(other, e.path("there"), "x")
			e.fires(missing, driver.EventCreated, e.path("a"))
			e.fires(there, driver.EventChanged, e.path("there"))
		}},
		{"watchexists/fires after a cut for a change meanwhile", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("set"), nil, driver.Persistent)
			e.create(s, e.path("gone"), nil, driver.Persistent)
			_, made := e.watchExists(s, e.path("made"), false)
			_, set := e.watchExists(s, e.path("set"), true)
			_, gone := e.watchExists(s, e.path("gone"), true)
			_, still := e.watchExists(s, e.path("still missing"), false)
			heal := e.cut(s)
			e.create(other, e.path("made"), nil, driver.Persistent)
			e.set(other, e.path("set"), "x")
			e.delete(other, e.path("gone"))
			heal()
			e.fires(made, driver.EventCreated, e.path("made"))
			e.fires(set, driver.EventChanged, e.path("set"))
			e.fires(gone, driver.EventDeleted, e.path("gone"))
			e.silent(s, still, e.path("still missing"), "after a reconnect")
		}},
		{"watchexists/set again after a reconnect fires once", func(e *env) {
			s, other := e.connect(), e.connect()
			channels := make(map[<-chan driver.Event]bool)
			for gen := uint64(1); gen <= 3; gen++ {
				if gen > 1 {
					e.h.Kill(s)
					e.reconnects(s, gen)
				}
				_, events := e.watchExists(s, e.path("a"), false)
				channels[events] = true
			}
			e.create(other, e.path("a"), nil, driver.Persistent)
			for events := range channels {
				e.fires(events, driver.EventCreated, e.path("a"))
			}
		}},
	}
}
