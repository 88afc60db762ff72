package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestTxn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		acl := driver.OpenACL(driver.PermAll)
		res, err := l.Txn(t.Context(), driver.CreateOp("/data", []byte("1"), driver.Persistent, acl), driver.SetOp("/data", []byte("2"), 0))
		if err != nil || len(res) != 2 || res[0].Path != "/data" || res[1].Stat.Version != 1 {
			t.Errorf("Txn returned %+v, %v", res, err)
		}
		if _, err := l.Txn(t.Context(), driver.SetOp("/data", []byte("3"), driver.AnyVersion), driver.CheckOp("/data", 7)); !errors.Is(err, driver.ErrBadVersion) {
			t.Errorf("a Txn with a wrong version: %v, want ErrBadVersion", err)
		}
		if n, _ := plain(t, e).Get(t.Context(), "/data"); string(n.Data) != "2" {
			t.Errorf("a failed Txn was applied: %q", n.Data)
		}
		queue, _ := c.Contenders(t.Context(), "x")
		if _, err := l.Txn(t.Context(), driver.DeleteOp("/zklock/x/"+queue[0].Node, driver.AnyVersion)); !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("a Txn on the lock's own node: %v, want ErrConflict", err)
		}
		e.Break("/zklock/x")
		if _, err := l.Txn(t.Context(), driver.SetOp("/data", []byte("4"), driver.AnyVersion)); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("a Txn after the lock's node was deleted: %v, want ErrLost", err)
		}
		if l.Valid() || l.Err() == nil {
			t.Error("the lock is not lost")
		}
		l = mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		mustRelease(t, l)
		if _, err := l.Txn(t.Context()); !errors.Is(err, zklock.ErrReleased) {
			t.Errorf("a Txn after Release: %v, want ErrReleased", err)
		}
	})
}

func TestLateTxnNeverReachesTheNextHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		gate := &faultdriver.Gate{}
		faults := faultdriver.Path("/data", faultdriver.On(faultdriver.Multi, faultdriver.Late(gate)))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		s := plain(t, e)
		if _, err := s.Create(t.Context(), "/data", []byte("0"), driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, c.Mutex("x"), t.Context())
		if _, err := l.Txn(t.Context(), driver.SetOp("/data", []byte("late"), driver.AnyVersion)); !errors.Is(err, zklock.ErrUnknownOutcome) {
			t.Errorf("Txn: %v, want ErrUnknownOutcome", err)
		}
		mustRelease(t, l)
		n := <-next
		if n.Token().Zxid == l.Token().Zxid {
			t.Error("the place was handed over although a Txn of unknown outcome may still be applied")
		}
		if gate.Release() != 1 {
			t.Error("the Txn was not held back")
		}
		synctest.Wait()
		if n, _ := s.Get(t.Context(), "/data"); string(n.Data) != "0" {
			t.Errorf("the late Txn was applied: %q", n.Data)
		}
		mustRelease(t, n)
	})
}

func TestReleaseWaitsForTxns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Path("/data", faultdriver.On(faultdriver.Multi, faultdriver.DelayReply(time.Second)))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, c.Mutex("x"), t.Context())
		txn := make(chan error, 1)
		go func() {
			_, err := l.Txn(t.Context(), driver.CreateOp("/data", nil, driver.Persistent, driver.OpenACL(driver.PermAll)))
			txn <- err
		}()
		synctest.Wait()
		released := make(chan error, 1)
		go func() { released <- l.Release(context.Background()) }()
		none(t, "the next waiter, with a Txn under way,", next)
		if err := <-txn; err != nil {
			t.Error(err)
		}
		if err := <-released; err != nil {
			t.Error(err)
		}
		mustRelease(t, <-next)
	})
}

// Release stops waiting for a Txn when Release's context ends. The Txn may be applied
// after that. So the place is not handed over: with the node still there the Txn would
// succeed under the next holder.
func TestReleaseThatCannotWaitForATxnHandsNothingOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Path("/data", faultdriver.On(faultdriver.Multi, faultdriver.Delay(time.Second)))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), map[string]string{"handover_time": "1h"})
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, c.Mutex("x"), t.Context())
		late := make(chan error, 1)
		go func() {
			_, err := l.Txn(t.Context(), driver.CreateOp("/data", nil, driver.Persistent, driver.OpenACL(driver.PermAll)))
			late <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = l.Release(ctx)
		n := <-next
		if n.Token().Zxid == l.Token().Zxid {
			t.Error("the place was handed over with a Txn under way")
		}
		if err := <-late; err == nil {
			t.Error("the Txn was applied after its holder's release")
		}
		mustRelease(t, n)
	})
}

// Get reads while the lock is held, and what Txns under earlier holds have written.
func TestGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Path("/data", faultdriver.On(faultdriver.Get, faultdriver.Script(faultdriver.LoseReply(), faultdriver.NotSent())))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		if _, err := l.Txn(t.Context(), driver.CreateOp("/data", []byte("1"), driver.Persistent, c.ACL())); err != nil {
			t.Fatal(err)
		}
		if n, err := l.Get(t.Context(), "/data"); err != nil || string(n.Data) != "1" || n.Stat.Version != 0 {
			t.Errorf("%+v, %v", n, err)
		}
		var failed *zklock.Error
		if _, err := l.Get(t.Context(), "/none"); !errors.Is(err, driver.ErrNoNode) || !errors.As(err, &failed) || failed.Op != "get" || failed.Name != "x" {
			t.Errorf("a missing znode: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Get(ctx, "/data"); !errors.Is(err, context.Canceled) || errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("with a context that has ended: %v", err)
		}
		mustRelease(t, l)
		if n, err := l.Get(t.Context(), "/data"); !errors.Is(err, zklock.ErrReleased) || n.Data != nil {
			t.Errorf("after Release: %+v, %v", n, err)
		}
		l = mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		killAll(e)
		if n, err := l.Get(t.Context(), "/data"); !errors.Is(err, zklock.ErrLost) || n.Data != nil {
			t.Errorf("after the session has expired: %+v, %v", n, err)
		}
	})
}

// What was read while the lock was given back does not count.
func TestGetThatEndsAfterTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var l *zklock.Lock
		c := connect(t, faultcontrol.Control(e.Connector(), func(op faultdriver.Op) faultdriver.Fault {
			if op.Kind == faultdriver.Get && op.Paths[0] == "/" {
				return faultdriver.DelayReply(time.Second)
			}
			return faultdriver.None()
		}), nil)
		l = mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		go func() {
			time.Sleep(500 * time.Millisecond)
			mustRelease(t, l)
		}()
		if n, err := l.Get(t.Context(), "/"); !errors.Is(err, zklock.ErrReleased) {
			t.Errorf("released while the answer was under way: %+v, %v", n, err)
		}
	})
}
