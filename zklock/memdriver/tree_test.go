package memdriver_test

import (
	"math"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestSequence: the sequence number counts all creations, sequential or not, and does
// not restart when children are deleted.
func TestSequence(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		create(t, s, "/p", driver.Persistent)
		first := create(t, s, "/p/n-", driver.EphemeralSequential)
		if first != "/p/n-0000000000" {
			t.Fatal(first)
		}
		create(t, s, "/p/x", driver.Persistent)
		if err := s.Delete(t.Context(), first, driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		if got := create(t, s, "/p/", driver.PersistentSequential); got != "/p/0000000002" {
			t.Fatal(got)
		}
		_, stat, err := s.Children(t.Context(), "/p")
		if err != nil || stat.Cversion != 4 || stat.NumChildren != 2 {
			t.Fatalf("got %+v, %v, want the Stat of three creations and one deletion", stat, err)
		}
	})
}

// TestSequenceSticks: the sequence number stays at its maximum, so that names collide
// instead of becoming negative.
func TestSequenceSticks(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		create(t, s, "/p", driver.Persistent)
		if err := e.SetSequence("/p", math.MaxInt32-1); err != nil {
			t.Fatal(err)
		}
		for _, suffix := range []string{"a-2147483646", "b-2147483647", "c-2147483647"} {
			if got := create(t, s, "/p/"+suffix[:2], driver.EphemeralSequential); got != "/p/"+suffix {
				t.Fatalf("%s, want %s", got, suffix)
			}
		}
		_, err := s.Create(t.Context(), "/p/c-", nil, driver.EphemeralSequential, open)
		want(t, err, driver.ErrNodeExists, "create with a name that exists")
	}, memdriver.WithServers(3))
}

// TestMultiSeesItsOwnCreates: within a transaction, a set after a create reports the
// new child, and a set before it does not.
func TestMultiSeesItsOwnCreates(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		create(t, s, "/p", driver.Container)
		results, err := s.Multi(t.Context(), []driver.Op{
			driver.SetOp("/p", []byte("1"), driver.AnyVersion),
			driver.CreateOp("/p/n-", nil, driver.EphemeralSequential, open),
			driver.SetOp("/p", []byte("2"), driver.AnyVersion),
		})
		if err != nil {
			t.Fatal(err)
		}
		before, after := results[0].Stat, results[2].Stat
		if before.NumChildren != 0 || after.NumChildren != 1 || after.Version != 2 {
			t.Fatalf("before %+v after %+v", before, after)
		}
		n, err := s.Get(t.Context(), results[1].Path)
		if err != nil || n.Stat.Czxid != after.Mzxid || before.Mzxid != after.Mzxid {
			t.Fatalf("got %+v, %v, want one zxid for all operations", n.Stat, err)
		}
	})
}

// TestRollBack: a failed transaction uses a zxid and leaves no other trace.
func TestRollBack(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		create(t, s, "/p", driver.Persistent)
		create(t, s, "/p/a", driver.Ephemeral)
		_, events, err := s.Watch(t.Context(), "/p/a")
		if err != nil {
			t.Fatal(err)
		}
		before, stats := e.Trees()[0], stats(t, s, "/p", "/p/a")
		_, err = s.Multi(t.Context(), []driver.Op{
			driver.CreateOp("/p/n-", nil, driver.EphemeralSequential, open),
			driver.SetOp("/p", []byte("x"), driver.AnyVersion),
			driver.SetOp("/p/a", []byte("x"), driver.AnyVersion),
			driver.DeleteOp("/p/a", driver.AnyVersion),
			driver.CreateOp("/p/a", nil, driver.Persistent, open),
			driver.CheckOp("/p", 7),
		})
		want(t, err, driver.ErrBadVersion, "multi")
		if after := e.Trees()[0]; after != before {
			t.Fatalf("before\n%s\nafter\n%s", before, after)
		}
		for i, path := range []string{"/p", "/p/a"} {
			if n, _ := s.Get(t.Context(), path); n.Stat != stats[i] {
				t.Fatalf("%s: %+v, was %+v", path, n.Stat, stats[i])
			}
		}
		select {
		case ev := <-events:
			t.Fatalf("event %v for a change that was rolled back", ev)
		default:
		}
		if got := create(t, s, "/p/n-", driver.EphemeralSequential); got != "/p/n-0000000001" {
			t.Fatalf("got %s: the failed create has used a sequence number", got)
		}
		n, err := s.Get(t.Context(), "/p/n-0000000001")
		if err != nil || n.Stat.Czxid != stats[1].Czxid+2 {
			t.Fatalf("zxid %#x after %#x, %v: want exactly one zxid in between, for the failed transaction", n.Stat.Czxid, stats[1].Czxid, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := connect(t, e.Connector(), 10*time.Second)
		if has(t, other, "/p/a") {
			t.Fatal("a deleted and restored ephemeral has outlived its session")
		}
	})
}

func stats(t *testing.T, s driver.Session, paths ...string) []driver.Stat {
	t.Helper()
	var all []driver.Stat
	for _, path := range paths {
		n, err := s.Get(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n.Stat)
	}
	return all
}

// TestReaper: the leader removes containers that have been used, and no others.
func TestReaper(t *testing.T) {
	for _, servers := range []int{1, 3} {
		bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
			s := connect(t, e.Connector(), 20*time.Second)
			create(t, s, "/unused", driver.Container)
			create(t, s, "/used", driver.Container)
			create(t, s, "/inuse", driver.Container)
			create(t, s, "/inuse/e", driver.Ephemeral)
			path := create(t, s, "/used/e", driver.Ephemeral)
			if err := s.Delete(t.Context(), path, driver.AnyVersion); err != nil {
				t.Fatal(err)
			}
			pass(59 * time.Second)
			if !has(t, s, "/used") {
				t.Fatal("the container was removed too early")
			}
			pass(2 * time.Second)
			if has(t, s, "/used") || !has(t, s, "/unused") || !has(t, s, "/inuse") {
				t.Fatalf("after the reaper:\n%s", e.Dump())
			}
		}, memdriver.WithServers(servers))
	}
}

// TestReaperMakesUpForIdleTime: nothing runs while no client is connected, and later
// clients see no difference.
func TestReaperMakesUpForIdleTime(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 20*time.Second)
		create(t, s, "/c", driver.Container)
		create(t, s, "/c/e", driver.Ephemeral)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		if !e.Quiet() {
			t.Fatal("events are scheduled though no session is open")
		}
		pass(time.Hour)
		s = connect(t, e.Connector(), 20*time.Second)
		pass(time.Millisecond)
		if has(t, s, "/c") {
			t.Fatal("the empty container still exists after an hour")
		}
	}, memdriver.WithReapInterval(time.Minute))
}
