package session

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// onConn is a driver.Session that has a connection, and sends no request.
type onConn struct {
	driver.Session
	generation uint64
}

func (c *onConn) Conn() (uint64, time.Time) { return c.generation, time.Time{} }
func (c *onConn) Timeout() time.Duration    { return 10 * time.Second }
func (c *onConn) ID() int64                 { return 1 }
func (c *onConn) Server() string            { return "" }

// busySession returns a session with one place, on connection 1, whose lease ends after left.
func busySession(ds driver.Session, left time.Duration) *Session {
	s := Inert(context.Background(), ds)
	s.gen, s.work, s.needing, s.counting = 1, 1, 1, true
	s.lease = lease.Lease{Timeout: 10 * time.Second, Tick: 2 * time.Second}
	s.lease.Connected(lease.Now(), lease.Now(), false)
	s.lease.Until = lease.Now().Add(left)
	s.publishLocked()
	return s
}

// exchange has a request answered at once.
func exchange(s *Session, committed bool) { _ = s.prove(committed, func() error { return nil }) }

// A reply after the end of the lease does not extend it, whatever it proves: a caller may have
// seen the end already.
func TestLeaseThatRanOutIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			left  time.Duration
			alive bool
		}{{2 * time.Second, true}, {time.Second, false}} {
			s := busySession(&onConn{generation: 1}, c.left)
			_ = s.prove(true, func() error { time.Sleep(time.Second); return nil })
			if s.Alive() != c.alive {
				t.Errorf("a lease of %v, and a reply after 1s: Alive is %v, want %v", c.left, s.Alive(), c.alive)
			}
		}
	})
}

// A request that was sent on one connection proves nothing if it was answered on another one,
// or if the chain of exchanges belongs to another connection already.
func TestReplyOfAnOlderConnectionProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			what  string
			then  func(ds *onConn, s *Session)
			moves bool
		}{
			{"the same connection", func(*onConn, *Session) {}, true},
			{"another connection, which the overseer has not noticed", func(ds *onConn, _ *Session) { ds.generation = 2 }, false},
			{"a chain of another connection", func(_ *onConn, s *Session) { s.gen = 2 }, false},
		} {
			ds := &onConn{generation: 1}
			s := busySession(ds, 2*time.Second)
			before := s.lease.Until
			_ = s.prove(true, func() error { time.Sleep(time.Second); c.then(ds, s); return nil })
			if moved := !s.lease.Until.Equal(before); moved != c.moves {
				t.Errorf("%s: the lease was extended: %v, want %v", c.what, moved, c.moves)
			}
		}
	})
}

// flight is one transaction of a committer under test. It waits until the test answers it.
type flight struct {
	ops    []driver.Op
	answer chan error // receives a value when the transaction is to be answered
}

// groups returns a committer that sends its transactions to flights, where the test answers
// them, an error that it answers with is about all of a transaction. If guilty is not "", operations on that path fail.
func groups(ctx context.Context, wg *sync.WaitGroup, guilty string) (c *committer, flights chan flight) {
	flights = make(chan flight, 2*maxCreates)
	c = &committer{ctx: ctx, wg: wg}
	c.multi = func(_ context.Context, _ string, _ int, ops []driver.Op) ([]driver.OpResult, error) {
		f := flight{ops, make(chan error, 1)}
		flights <- f
		if err := <-f.answer; err != nil {
			return nil, err
		}
		results := make([]driver.OpResult, len(ops))
		at := slices.IndexFunc(ops, func(op driver.Op) bool { return op.Path == guilty })
		for i := range ops {
			if results[i].Path = ops[i].Path; at >= 0 {
				results[i].Err = driver.ErrRolledBack
			}
		}
		if at < 0 {
			return results, nil
		}
		results[at].Err = driver.ErrNoNode // only the first operation that fails has its own error
		return results, driver.ErrNoNode
	}
	return c, flights
}

// busy submits writes until the maximum of transactions is under way, so that further writes
// wait together. It returns a function that answers these transactions.
func busy(t *testing.T, c *committer, flights chan flight) (land func()) {
	t.Helper()
	var under []flight
	for range maxFlights {
		c.Submit(removal("/filler"))
		synctest.Wait()
		under = append(under, <-flights)
	}
	return func() { under[0].answer <- nil; synctest.Wait(); under[1].answer <- nil; synctest.Wait() }
}

func removal(path string) *Write {
	return &Write{Kind: "release", Ops: []driver.Op{driver.DeleteOp(path, driver.AnyVersion)}}
}

func creation(dir, node string) *Write {
	return &Write{Kind: "enqueue", Ops: []driver.Op{driver.CreateOp(dir+"/"+node, nil, driver.EphemeralSequential, nil)},
		Creates: new(entry)}
}

// entry counts how often it is settled.
type entry int

func (e *entry) Settle(*Write) []int32 { *e++; return nil }

func paths(f flight) (found []string) {
	for _, op := range f.ops {
		found = append(found, op.Path)
	}
	return found
}
