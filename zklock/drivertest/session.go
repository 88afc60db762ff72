package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

func sessionTests() []test {
	return []test{
		{"session/is connected when Connect returns", func(e *env) {
			s := e.connect()
			state, changed := s.State()
			if state != driver.Connected {
				e.Fatalf("a new session is %v", state)
			}
			select {
			case <-changed:
				e.Fatal("the state channel of a new session is closed")
			default:
			}
			if s.ID() == 0 {
				e.Fatal("a new session has id 0")
			}
		}},
		{"session/connector diagnoses nothing without a Connect under way", func(e *env) {
			c := e.h.Connector()
			if err := c.Diagnose(); err != nil {
				e.Fatalf("before any Connect, Diagnose returns %v, want nil", err)
			}
			e.open(c, e.limit(true))
			if err := c.Diagnose(); err != nil {
				e.Fatalf("after a Connect that succeeded, Diagnose returns %v, want nil", err)
			}
		}},
		{"session/ids are unique", func(e *env) {
			seen := make(map[int64]bool)
			for range 5 {
				s := e.connect()
				if seen[s.ID()] {
					e.Fatalf("two sessions have id %#x", s.ID())
				}
				seen[s.ID()] = true
			}
		}},
		{"session/shows no older state after a reconnect", func(e *env) {
			s, path := e.connect(), e.path("a")
			e.create(s, path, []byte("old"), driver.Persistent)
			e.data(s, path, "old")
			var heal func()
			staler, ok := e.h.(Staler)
			if ok {
				heal, ok = staler.Stale(s, func() {
					e.set(s, path, "new")
					e.data(s, path, "new")
				})
			}
			if !ok {
				e.skip("the harness cannot lead a session to a server that lags")
			}
			e.Cleanup(heal)
			shown := make(chan string, 1)
			go func() {
				n, err := s.Get(e.ctx, path)
				for (errors.Is(err, driver.ErrConnLoss) || errors.Is(err, driver.ErrNotSent)) && e.ctx.Err() == nil {
					n, err = s.Get(e.ctx, path)
				}
				shown <- fmt.Sprintf("%s, %v", n.Data, err)
			}()
			timer := time.NewTimer(e.h.Timeout() / 8)
			recv(e, timer.C, "a timer")
			heal()
			if got := recv(e, shown, "the read"); got != "new, <nil>" {
				e.Fatalf("a reply has shown new data, and after a reconnect a read returned %s", got)
			}
		}},
		{"session/timeout within the limits is granted", func(e *env) {
			for _, want := range []time.Duration{e.h.Timeout(), e.limit(true)} {
				if got := e.open(e.h.Connector(), want).Timeout(); got != want {
					e.Fatalf("asked for a timeout of %v, which is within the limits, and got %v", want, got)
				}
			}
		}},
		{"session/timeout beyond the limits is clamped", func(e *env) {
			shortest, longest := e.h.Limits()
			for _, c := range []struct{ ask, want time.Duration }{{shortest / 2, shortest}, {longest * 2, longest}} {
				if got := e.open(e.h.Connector(), c.ask).Timeout(); got != c.want {
					e.Fatalf("asked for a timeout of %v and got %v, want %v", c.ask, got, c.want)
				}
			}
		}},
		{"session/outlives the context and the connector it was made with", func(e *env) {
			c := e.h.Connector()
			ctx, cancel := context.WithCancel(e.ctx)
			s, err := c.Connect(ctx, e.limit(true))
			e.ok(err, "connect")
			e.Cleanup(func() { _ = s.Close(e.ctx) })
			cancel()
			for range 2 {
				e.ok(c.Close(), "close the connector")
			}
			e.create(s, e.path("a"), nil, driver.Ephemeral)
			if state, _ := s.State(); state != driver.Connected {
				e.Fatalf("after the end of its context and connector, the session is %v, want it connected", state)
			}
			_, err = c.Connect(e.ctx, e.limit(true))
			e.is(err, driver.ErrClosed, "connect with a closed connector")
		}},
		{"session/is not made when the context has ended", func(e *env) {
			c := e.h.Connector()
			defer c.Close()
			ctx, cancel := context.WithCancel(e.ctx)
			cancel()
			s, err := c.Connect(ctx, e.limit(true))
			if !errors.Is(err, context.Canceled) || s != nil {
				e.Fatalf("connect with an ended context returned session %v and error %v, want context.Canceled", s, err)
			}
		}},
		{"session/connector names its driver", func(e *env) {
			c := e.h.Connector()
			defer c.Close()
			if c.Driver() == nil {
				e.Fatal("the connector has no driver")
			}
		}},
		{"session/executes the requests of one goroutine in order", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			for version := range int32(50) {
				_, err := s.Set(e.ctx, e.path("a"), []byte(strconv.Itoa(int(version))), version)
				e.ok(err, "set")
			}
			e.data(s, e.path("a"), "49")
		}},
		{"session/may be used by many goroutines at once", func(e *env) {
			const goroutines, rounds = 32, 5
			s := e.connect()
			done := make(chan error, goroutines)
			for g := range goroutines {
				go func() { done <- e.life(s, e.path(fmt.Sprintf("g%d-", g)), rounds) }()
			}
			for range goroutines {
				if err := recv(e, done, "a goroutine"); err != nil {
					e.Fatal(err)
				}
			}
			if got := e.names(s, e.root); len(got) != 0 {
				e.Fatalf("every goroutine has deleted its nodes, yet %q are left", got)
			}
			if stat := e.read(s, e.root).Stat; stat.Version != goroutines*rounds {
				e.Fatalf("after %d sets the version is %d", goroutines*rounds, stat.Version)
			}
		}},
	}
}

// limit returns the longest session timeout that the ensemble grants, or the shortest.
func (e *env) limit(longest bool) time.Duration {
	short, long := e.h.Limits()
	if longest {
		return long
	}
	return short
}

// life uses every method of s, and returns an error if a result is wrong. The results do not
// depend on how many goroutines do the same. life may run on any goroutine.
func (e *env) life(s driver.Session, prefix string, rounds int) error {
	for range rounds {
		results, err := s.Multi(e.ctx, []driver.Op{
			driver.CreateOp(prefix, []byte(prefix), driver.EphemeralSequential, everyone()),
			driver.SetOp(e.root, nil, driver.AnyVersion),
		})
		if err != nil {
			return fmt.Errorf("multi: %w", err)
		}
		path := results[0].Path
		node, events, err := s.Watch(e.ctx, path)
		if err != nil || string(node.Data) != prefix || node.Stat.Czxid != results[1].Stat.Mzxid {
			return fmt.Errorf("watch %s: data %q, stat %+v, error %w", path, node.Data, node.Stat, err)
		}
		if _, _, err := s.Children(e.ctx, e.root); err != nil {
			return fmt.Errorf("children: %w", err)
		}
		if err := s.Sync(e.ctx, path); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		if stat, err := s.Set(e.ctx, path, nil, 0); err != nil || stat.Version != 1 {
			return fmt.Errorf("set %s: stat %+v, error %w", path, stat, err)
		}
		select {
		case event := <-events:
			if event.Type != driver.EventChanged || event.Path != path {
				return fmt.Errorf("watch of %s delivered %+v", path, event)
			}
		case <-e.ctx.Done():
			return fmt.Errorf("watch of %s did not fire", path)
		}
		s.State()
		s.Conn()
		s.Timeout()
		s.Server()
		if err := s.Delete(e.ctx, path, 1); err != nil {
			return fmt.Errorf("delete %s: %w", path, err)
		}
		if _, err := s.Get(e.ctx, path); !errors.Is(err, driver.ErrNoNode) {
			return fmt.Errorf("get of the deleted %s: %w", path, err)
		}
	}
	return nil
}

func ephemeralTests() []test {
	return []test{
		{"ephemeral/nodes are seen by other sessions", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), []byte("x"), driver.Ephemeral)
			e.data(other, e.path("a"), "x")
		}},
		{"ephemeral/nodes, and no others, are gone when Close has returned", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("e"), nil, driver.Ephemeral)
			e.create(s, e.path("p"), nil, driver.Persistent)
			e.create(s, e.path("p/s-"), nil, driver.EphemeralSequential)
			e.create(s, e.path("q-"), nil, driver.PersistentSequential)
			e.create(other, e.path("other"), nil, driver.Ephemeral)
			e.ok(s.Close(e.ctx), "close")
			if got := e.names(other, e.root); !equal(got, "other", "p", "q-0000000002") {
				e.Fatalf("the nodes left after the end of the session are %q", got)
			}
			if stat := e.read(other, e.path("p")).Stat; stat.NumChildren != 0 || stat.Cversion != 2 {
				e.Fatalf("the parent of an ephemeral node that is gone has the stat %+v, want no children and cversion 2", stat)
			}
		}},
		{"ephemeral/nodes may be deleted by any session", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Ephemeral)
			e.delete(other, e.path("a"))
			e.absent(s, e.path("a"))
			e.create(other, e.path("a"), nil, driver.Ephemeral)
			e.ok(s.Close(e.ctx), "close")
			if owner := e.read(other, e.path("a")).Stat.EphemeralOwner; owner != other.ID() {
				e.Fatalf("the node's owner is %#x, want %#x", owner, other.ID())
			}
		}},
		{"ephemeral/nodes stay while the connection changes", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Ephemeral)
			before, id := e.read(other, e.path("a")).Stat, s.ID()
			e.h.Kill(s)
			e.reconnects(s, 2)
			if after := e.read(other, e.path("a")).Stat; after != before || s.ID() != id {
				e.Fatalf("after a reconnect, session %#x has the id %#x, and its node's stat is %+v, was %+v", id, s.ID(), after, before)
			}
		}},
	}
}
