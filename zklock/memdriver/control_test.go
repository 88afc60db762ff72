package memdriver_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestOperator: the operator's methods remove the right nodes, whatever their access
// lists allow.
func TestOperator(t *testing.T) {
	for _, latency := range []time.Duration{0, 5 * time.Millisecond} {
		bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
			s := connect(t, e.Connector(), 10*time.Second)
			for _, path := range []string{"/lock", "/lock/other"} {
				if _, err := s.Create(t.Context(), path, nil, driver.Persistent, driver.OpenACL(driver.PermRead|driver.PermCreate)); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				create(t, s, "/lock/_c_x-__WRIT__", driver.EphemeralSequential)
			}
			create(t, s, "/lock/persistent-0000000001", driver.Persistent)
			want(t, e.Delete("/lock"), driver.ErrNotEmpty, "delete of a znode with children")
			want(t, e.Delete("/nothing"), driver.ErrNoNode, "delete of nothing")
			want(t, e.SetSequence("/nothing", 1), driver.ErrNoNode, "sequence of nothing")
			if n := e.Break("/lock"); n != 3 {
				t.Fatalf("broke %d contenders, want 3", n)
			}
			if n := e.Break("/nothing"); n != 0 {
				t.Fatalf("broke %d contenders of a missing lock", n)
			}
			names, _, err := s.Children(t.Context(), "/lock")
			if err != nil || len(names) != 2 {
				t.Fatalf("nodes that are left: %q, error %v", names, err)
			}
			if err := e.Delete("/lock/other"); err != nil {
				t.Fatal(err)
			}
		}, memdriver.WithLatency(latency), memdriver.WithServers(3))
	}
}

// TestOperatorWithoutLeader: the operator's methods fail if the ensemble has no
// leader.
func TestOperatorWithoutLeader(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		create(t, s, "/a", driver.Persistent)
		e.Partition(memdriver.AroundServer(0), memdriver.AroundServer(1))
		// The delete is proposed to followers that do not receive it, and is dropped
		// at the end of the leader's term.
		want(t, e.Delete("/a"), driver.ErrConnLoss, "delete while the leader is alone")
		want(t, e.Delete("/a"), driver.ErrNotSent, "delete without a leader")
	}, memdriver.WithServers(3))
}

// A session that its client does not close expires like one that has been silent: its client
// learns of that first, and the nodes go after its timeout. Those of a session go with one zxid.
func TestExpireAll(t *testing.T) {
	for _, opts := range [][]memdriver.Option{nil, {memdriver.WithServers(3), memdriver.WithLatency(5 * time.Millisecond)}} {
		bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
			var all []driver.Session
			for range 3 {
				s := connect(t, e.Connector(), 10*time.Second)
				create(t, s, "/a-", driver.EphemeralSequential)
				create(t, s, "/a-", driver.EphemeralSequential)
				all = append(all, s)
			}
			began := time.Now()
			time.AfterFunc(time.Second, func() {
				for _, s := range all {
					if state(s) != driver.Expired {
						t.Errorf("a second later a session is %v", state(s))
					}
					if _, err := s.Get(t.Context(), "/"); !errors.Is(err, driver.ErrSessionExpired) {
						t.Errorf("a second later: %v", err)
					}
				}
				if n := strings.Count(e.Dump(), "owner"); n != 6 {
					t.Errorf("a second later %d nodes are there, want 6", n)
				}
			})
			e.ExpireAll()
			if took := time.Since(began); took < 9*time.Second || took > 12*time.Second {
				t.Errorf("sessions of 10s ended after %v", took)
			}
			if left := e.Sessions(); len(left) != 0 {
				t.Fatalf("sessions left: %x", left)
			}
			other := connect(t, e.Connector(), 10*time.Second)
			if names, _, err := other.Children(t.Context(), "/"); err != nil || len(names) != 1 {
				t.Fatalf("%q, %v", names, err)
			}
		}, opts...)
	}
}

// The nodes of a session that expires go when its client has closed it, and not before.
func TestExpireWaitsForTheClient(t *testing.T) {
	for _, opts := range [][]memdriver.Option{nil, {memdriver.WithServers(3), memdriver.WithLatency(5 * time.Millisecond)}} {
		bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
			s, other := connect(t, e.Connector(), 10*time.Second), connect(t, e.Connector(), 10*time.Second)
			create(t, s, "/a", driver.Ephemeral)
			_, events, err := other.Watch(t.Context(), "/a")
			if err != nil {
				t.Fatal(err)
			}
			expired := make(chan struct{}, 2)
			for range cap(expired) {
				go func() {
					e.Expire(s.ID())
					expired <- struct{}{}
				}()
				pass(2 * time.Second)
			}
			if state(s) != driver.Expired || state(other) != driver.Connected || len(events) > 0 || len(e.Sessions()) != 2 {
				t.Errorf("before Close: %v and %v, %d events, sessions %x", state(s), state(other), len(events), e.Sessions())
			}
			closed := time.Now()
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			for range cap(expired) {
				<-expired
			}
			if ev := <-events; ev.Type != driver.EventDeleted || time.Since(closed) > 100*time.Millisecond {
				t.Errorf("%v %v after Close, want the deletion at once", ev.Type, time.Since(closed))
			}
		}, opts...)
	}
}

// A client that is stopped notices nothing before the thaw. Its session ends after its timeout.
func TestExpireOfAStoppedClient(t *testing.T) {
	for _, early := range []bool{false, true} {
		bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
			s := connect(t, e.Connector(), 10*time.Second)
			create(t, s, "/a", driver.Ephemeral)
			thaw := e.Freeze(s.ID())
			began := time.Now()
			if early {
				time.AfterFunc(5*time.Second, thaw)
			}
			e.Expire(s.ID())
			if took := time.Since(began); took < 9*time.Second || took > 12*time.Second || len(e.Sessions()) > 0 {
				t.Errorf("after %v there are the sessions %x", took, e.Sessions())
			}
			if want := map[bool]driver.State{true: driver.Expired, false: driver.Connected}[early]; state(s) != want {
				t.Errorf("the client is %v, want %v", state(s), want)
			}
			thaw()
			_, err := s.Get(t.Context(), "/")
			want(t, err, driver.ErrSessionExpired, "get after the thaw")
		})
	}
}

// Expire does not wait for the end of a session that is unknown, whose leader's term has ended, or
// whose ensemble is closed.
func TestExpireEnds(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		create(t, s, "/a", driver.Ephemeral)
		began := time.Now()
		e.Expire(s.ID() + 1)
		if time.Since(began) > 0 || state(s) != driver.Connected {
			t.Errorf("an unknown session: after %v the other one is %v", time.Since(began), state(s))
		}
		e.Partition(memdriver.BetweenServers(0, 1), memdriver.BetweenServers(0, 2), memdriver.BetweenServers(1, 2))
		e.ExpireAll() // the leader does not know yet that it is alone
		if e.Leader() >= 0 || !has(t, connectLater(t, e), "/a") {
			t.Errorf("ended without a majority:\n%s", e.Dump())
		}
		time.AfterFunc(time.Second, func() { e.Close() })
		e.ExpireAll()
	}, memdriver.WithServers(3))
}

// connectLater heals the ensemble and opens a session.
func connectLater(t *testing.T, e *memdriver.Ensemble) driver.Session {
	t.Helper()
	e.Heal()
	return connect(t, e.Connector(), 10*time.Second)
}

// KillSession removes a session's nodes while its client still believes in it.
func TestKillSession(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s, other := connect(t, e.Connector(), 10*time.Second), connect(t, e.Connector(), 10*time.Second)
		create(t, s, "/a", driver.Ephemeral)
		cut := memdriver.AroundSession(s.ID())
		e.Partition(cut)
		e.KillSession(s.ID())
		e.KillSession(s.ID())
		if state(s) != driver.Connected || has(t, other, "/a") || len(e.Sessions()) != 1 {
			t.Errorf("the client is %v, and the ensemble is\n%s", state(s), e.Dump())
		}
		e.Heal()
		pass(100 * time.Millisecond)
		if state(s) != driver.Expired {
			t.Errorf("the client is %v", state(s))
		}
	})
}

// TestOps: the counts match the clients' requests.
func TestOps(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		ctx := t.Context()
		create(t, s, "/a", driver.Persistent)
		_, _ = s.Set(ctx, "/a", nil, 7)
		_, _ = s.Get(ctx, "/a")
		_, _, _ = s.Children(ctx, "/")
		_ = s.Sync(ctx, "/")
		_, _, _ = s.Watch(ctx, "/a")
		_, _, _ = s.Watch(ctx, "/a")
		if n := e.WatchCount(); n != 1 {
			t.Fatalf("one client has %d watches on one path, want 1", n)
		}
		_, _ = s.Multi(ctx, []driver.Op{driver.CheckOp("/a", 0), driver.DeleteOp("/a", 0)})
		_ = s.Delete(ctx, "/a", 0)
		want := memdriver.Ops{
			Creates: 1, Deletes: 1, Sets: 1, Multis: 1, MultiOps: 2,
			Gets: 1, Watches: 2, Children: 1, Syncs: 1, Events: 1,
		}
		if got := e.Ops(); got != want || got.Writes() != 4 {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}

// TestDump: the dump shows servers, sessions and owners.
func TestDump(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		create(t, s, "/c", driver.Container)
		create(t, s, "/c/n-", driver.EphemeralSequential)
		dump := e.Dump()
		for _, part := range []string{"mem-0 leading", "mem-2 following", "session 0x", "  c container", "    n-0000000000 owner 0x"} {
			if !strings.Contains(dump, part) {
				t.Errorf("no %q in\n%s", part, dump)
			}
		}
	}, memdriver.WithServers(3))
}

// TestCloseEnsemble: Close leaves no caller waiting and nothing running, whatever is
// under way.
func TestCloseEnsemble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(50*time.Millisecond))
		s := connect(t, e.Connector(), 10*time.Second)
		create(t, s, "/a", driver.Persistent)
		_, events, err := s.Watch(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		inFlight := make(chan error, 1)
		go func() {
			_, err := s.Create(t.Context(), "/b", nil, driver.Persistent, open)
			inFlight <- err
		}()
		connecting := make(chan error, 1)
		go func() {
			_, err := e.Connector().Connect(t.Context(), 10*time.Second)
			connecting <- err
		}()
		pass(10 * time.Millisecond)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, <-inFlight, driver.ErrConnLoss, "request in flight")
		want(t, <-connecting, driver.ErrClosed, "connect under way")
		want(t, (<-events).Err, driver.ErrClosed, "watch")
		if state(s) != driver.Closed || !e.Quiet() {
			t.Fatalf("%v, quiet %v", state(s), e.Quiet())
		}
		_, err = s.Get(t.Context(), "/a")
		want(t, err, driver.ErrClosed, "get")
		_, err = e.Connector().Connect(t.Context(), 10*time.Second)
		want(t, err, driver.ErrClosed, "connect")
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A transaction is committed once a majority has it on the disk. Transactions that arrive while a flush is under way
// share the next one, and the end of a leader's term ends what it waits for.
func TestFlushDelaysCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3))
		defer e.Close()
		c := e.Connector()
		defer c.Close()
		s, err := c.Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		var nodes atomic.Int32
		took := func(n int) time.Duration {
			began := time.Now()
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					if _, err := s.Create(t.Context(), fmt.Sprint("/n-", nodes.Add(1)), nil, driver.Persistent, driver.OpenACL(driver.PermRead)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			return time.Since(began)
		}
		control := memcontrol.Of(e)
		control.Flush(e.Leader(), time.Second)
		if d := took(3); d != 0 {
			t.Errorf("with one slow disk a commit takes %v, want none", d)
		}
		for i := range 3 {
			control.Flush(i, time.Second)
		}
		synctest.Wait()
		if one, many := took(1), took(10); one < time.Second || one > 2*time.Second || many > 3*time.Second {
			t.Errorf("with slow disks a commit takes %v, and ten of them %v, want one and two flushes", one, many)
		}
		for i := range 3 {
			control.Flush(i, 0)
		}
	})
}
