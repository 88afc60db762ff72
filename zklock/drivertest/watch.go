package drivertest

import (
	"context"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

func watchTests() []test {
	return []test{
		{"watch/reads the node as get does", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), []byte("x"), driver.Ephemeral)
			e.set(s, e.path("a"), "y")
			node, _ := e.watch(s, e.path("a"))
			if want := e.read(s, e.path("a")); node.Stat != want.Stat || string(node.Data) != "y" {
				e.Fatalf("watch returned %q and %+v; get returned %q and %+v", node.Data, node.Stat, want.Data, want.Stat)
			}
		}},
		{"watch/of a missing node is ErrNoNode and arms nothing", func(e *env) {
			s := e.connect()
			_, events, err := s.Watch(e.ctx, e.path("a"))
			e.is(err, driver.ErrNoNode, "watch of a missing node")
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.set(s, e.path("a"), "x")
			e.delete(s, e.path("a"))
			if events != nil {
				e.silent(s, events, e.path("a"), "after changes of a node that did not exist when it was watched")
			}
		}},
		{"watch/fires once when another session deletes the node", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, events := e.watch(s, e.path("a"))
			e.delete(other, e.path("a"))
			e.fires(events, driver.EventDeleted, e.path("a"))
		}},
		{"watch/fires once when another session sets the data", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, events := e.watch(s, e.path("a"))
			for _, data := range []string{"one", "two", "three"} {
				e.set(other, e.path("a"), data)
			}
			e.delete(other, e.path("a"))
			e.fires(events, driver.EventChanged, e.path("a"))
		}},
		{"watch/fires for a change by its own session", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, events := e.watch(s, e.path("a"))
			e.set(s, e.path("a"), "x")
			e.fires(events, driver.EventChanged, e.path("a"))
			_, events = e.watch(s, e.path("a"))
			e.delete(s, e.path("a"))
			e.fires(events, driver.EventDeleted, e.path("a"))
		}},
		{"watch/delivers an event before the result of a later transaction", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			for i := range 100 {
				_, events := e.watch(s, e.path("a"))
				if i%2 == 0 {
					e.set(other, e.path("a"), "x")
				} else {
					e.delete(other, e.path("a"))
					e.create(other, e.path("a"), nil, driver.Persistent)
				}
				e.multi(s, driver.CreateOp(e.path("later-"), nil, driver.EphemeralSequential, everyone()))
				select {
				case <-events:
				default:
					e.Fatalf("round %d: another session has changed the node, a transaction after that has a result, and the event is not there", i)
				}
			}
		}},
		{"watch/delivers events in the order of the transactions", func(e *env) {
			s, other := e.connect(), e.connect()
			for i := range 100 {
				names := []string{"a", "b"}
				before, after := e.path(names[i%2]+"-first"), e.path(names[1-i%2]+"-second")
				e.create(s, before, nil, driver.Persistent)
				e.create(s, after, nil, driver.Persistent)
				_, first := e.watch(s, before)
				_, second := e.watch(s, after)
				deleted := make(chan error, 1)
				go func() { // so that the test looks at the moment of the second event
					err := other.Delete(e.ctx, before, driver.AnyVersion)
					if err == nil {
						err = other.Delete(e.ctx, after, driver.AnyVersion)
					}
					deleted <- err
				}()
				recv(e, second, "the event of the second deletion")
				select {
				case <-first:
				default:
					e.Fatalf("round %d: the event of a deletion is there, and the event of one before it is not", i)
				}
				e.ok(recv(e, deleted, "the deletions"), "delete")
			}
		}},
		{"watch/fires when a multi sets or deletes the node", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.create(s, e.path("b"), nil, driver.Persistent)
			_, a := e.watch(s, e.path("a"))
			_, b := e.watch(s, e.path("b"))
			e.multi(other, driver.SetOp(e.path("a"), nil, driver.AnyVersion), driver.DeleteOp(e.path("b"), driver.AnyVersion))
			e.fires(a, driver.EventChanged, e.path("a"))
			e.fires(b, driver.EventDeleted, e.path("b"))
		}},
		{"watch/does not fire for changes of children or failed changes", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, events := e.watch(s, e.path("a"))
			e.create(other, e.path("a/child"), nil, driver.Persistent)
			e.silent(s, events, e.path("a"), "after the creation of a child")
			e.delete(other, e.path("a/child"))
			e.silent(s, events, e.path("a"), "after the deletion of a child")
			_, err := other.Set(e.ctx, e.path("a"), nil, 7)
			e.is(err, driver.ErrBadVersion, "set of another version")
			_, err = other.Multi(e.ctx, []driver.Op{driver.SetOp(e.path("a"), nil, 0), driver.CheckOp(e.path("a"), 7)})
			e.is(err, driver.ErrBadVersion, "multi with a check of another version")
			e.multi(other, driver.CheckOp(e.path("a"), 0))
			e.silent(s, events, e.path("a"), "after failed changes")
			e.delete(other, e.path("a"))
			e.fires(events, driver.EventDeleted, e.path("a"))
		}},
		{"watch/of a node that is deleted and made again fires as deleted", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, events := e.watch(s, e.path("a"))
			e.multi(other, driver.DeleteOp(e.path("a"), driver.AnyVersion), persistent(e.path("a")))
			e.fires(events, driver.EventDeleted, e.path("a"))
			_, again := e.watch(s, e.path("a"))
			e.silent(s, again, e.path("a"), "armed after the node was made again")
			e.set(other, e.path("a"), "x")
			e.fires(again, driver.EventChanged, e.path("a"))
		}},
		{"watch/of one node by many calls fires for each", func(e *env) {
			s, second, other := e.connect(), e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			var all []<-chan driver.Event
			for _, by := range []driver.Session{s, s, s, second} {
				_, events := e.watch(by, e.path("a"))
				all = append(all, events)
			}
			e.delete(other, e.path("a"))
			for _, events := range all {
				e.fires(events, driver.EventDeleted, e.path("a"))
			}
		}},
		{"watch/of many nodes fires for the one that changed", func(e *env) {
			s, other := e.connect(), e.connect()
			var all []<-chan driver.Event
			for i := range 10 {
				path := e.path(strconv.Itoa(i))
				e.create(s, path, nil, driver.Persistent)
				_, events := e.watch(s, path)
				all = append(all, events)
			}
			e.delete(other, e.path("7"))
			e.fires(all[7], driver.EventDeleted, e.path("7"))
			for i, events := range all {
				if i != 7 {
					e.silent(s, events, e.path(strconv.Itoa(i)), "after the deletion of another node")
				}
			}
		}},
		{"watch/is armed at the moment of its read", func(e *env) {
			// In each round a set races with a watch, which starts a little later than
			// in the round before, until the set is always over first. If the read does
			// not show the set, the watch must fire. A driver that arms the watch after the
			// read loses some of these events.
			const rounds = 100
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			begun := time.Now()
			e.set(other, e.path("a"), "")
			e.read(s, e.path("a"))
			span := time.Since(begun)
			for round := range int32(rounds) {
				written := make(chan error, 1)
				go func() {
					_, err := other.Set(e.ctx, e.path("a"), nil, round+1)
					written <- err
				}()
				timer := time.NewTimer(span * time.Duration(round) / rounds)
				recv(e, timer.C, "a timer")
				node, events, err := s.Watch(e.ctx, e.path("a"))
				e.ok(err, "watch")
				e.ok(recv(e, written, "the set"), "set")
				if node.Stat.Version == round+1 {
					e.fires(events, driver.EventChanged, e.path("a"))
				}
				e.read(s, e.path("a")) // so that the next round does not read an older state
			}
		}},
		{"watch/outlives the context of its call", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			ctx, cancel := context.WithCancel(e.ctx)
			_, events, err := s.Watch(ctx, e.path("a"))
			e.ok(err, "watch")
			cancel()
			e.silent(s, events, e.path("a"), "after the end of the call's context")
			e.delete(s, e.path("a"))
			e.fires(events, driver.EventDeleted, e.path("a"))
		}},
		{"watch/works without a receiver", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			for range 100 {
				e.watch(s, e.path("a"))
				e.set(s, e.path("a"), "x")
			}
			e.data(s, e.path("a"), "x")
		}},
		{"watch/fires when the session that owns the node closes", func(e *env) {
			s, owner := e.connect(), e.connect()
			e.create(owner, e.path("a"), nil, driver.Ephemeral)
			_, events := e.watch(s, e.path("a"))
			e.ok(owner.Close(e.ctx), "close")
			e.fires(events, driver.EventDeleted, e.path("a"))
		}},
		{"watch/ends with ErrClosed when its session closes", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(other, e.path("a"), nil, driver.Persistent)
			e.create(other, e.path("b"), nil, driver.Persistent)
			_, a := e.watch(s, e.path("a"))
			_, b := e.watch(s, e.path("b"))
			e.ok(s.Close(e.ctx), "close")
			e.endsWith(a, driver.ErrClosed, e.path("a"))
			e.endsWith(b, driver.ErrClosed, e.path("b"))
		}},
		{"watch/survives a lost connection", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, events := e.watch(s, e.path("a"))
			e.h.Kill(s)
			e.reconnects(s, 2)
			e.silent(s, events, e.path("a"), "after a reconnect")
			e.delete(other, e.path("a"))
			e.fires(events, driver.EventDeleted, e.path("a"))
		}},
		{"watch/set again after a reconnect fires once", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			channels := make(map[<-chan driver.Event]bool)
			for gen := uint64(1); gen <= 3; gen++ {
				if gen > 1 {
					e.h.Kill(s)
					e.reconnects(s, gen)
				}
				_, first := e.watch(s, e.path("a"))
				_, second := e.watch(s, e.path("a"))
				if first == second {
					e.Fatalf("two calls of Watch on one connection returned the same channel")
				}
				channels[first], channels[second] = true, true
			}
			e.delete(other, e.path("a"))
			for events := range channels {
				e.fires(events, driver.EventDeleted, e.path("a"))
			}
		}},
		{"watch/fires after a cut for a node deleted meanwhile", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.create(s, e.path("b"), nil, driver.Persistent)
			_, a := e.watch(s, e.path("a"))
			_, b := e.watch(s, e.path("b"))
			heal := e.cut(s)
			e.delete(other, e.path("a"))
			heal()
			e.fires(a, driver.EventDeleted, e.path("a"))
			e.silent(s, b, e.path("b"), "after a reconnect")
		}},
		{"watch/fires after a cut for data set meanwhile", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			_, events := e.watch(s, e.path("a"))
			heal := e.cut(s)
			e.set(other, e.path("a"), "x")
			heal()
			e.fires(events, driver.EventChanged, e.path("a"))
		}},
	}
}
