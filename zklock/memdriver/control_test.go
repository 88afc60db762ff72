package memdriver_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestExpireAll: all sessions end at once, each with one zxid.
func TestExpireAll(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		var all []driver.Session
		for range 3 {
			s := connect(t, e.Connector(), 10*time.Second)
			create(t, s, "/a-", driver.EphemeralSequential)
			create(t, s, "/a-", driver.EphemeralSequential)
			all = append(all, s)
		}
		e.ExpireAll()
		if left := e.Sessions(); len(left) != 0 {
			t.Fatalf("sessions left: %x", left)
		}
		pass(100 * time.Millisecond)
		for _, s := range all {
			if state(s) != driver.Expired {
				t.Fatalf("%v", state(s))
			}
		}
		other := connect(t, e.Connector(), 10*time.Second)
		if names, _, err := other.Children(t.Context(), "/"); err != nil || len(names) != 1 {
			t.Fatalf("%q, %v", names, err)
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
