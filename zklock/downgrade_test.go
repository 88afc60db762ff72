package zklock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Downgrade waits for the writer's Txns that are under way: none may be applied while
// readers hold.
func TestDowngradeWaitsForTxns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Path("/data", faultdriver.On(faultdriver.Multi, faultdriver.Delay(2*time.Second)))
		c, other := connect(t, faultdriver.Wrap(e.Connector(), faults), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		local, remote := acquiring(t, c.RWMutex("x").Reader(), t.Context()), acquiring(t, other.RWMutex("x").Reader(), t.Context())
		wrote := make(chan error, 1)
		go func() {
			_, err := l.Txn(t.Context(), driver.CreateOp("/data", nil, driver.Persistent, driver.OpenACL(driver.PermAll)))
			wrote <- err
		}()
		synctest.Wait()
		downgraded := make(chan error, 1)
		go func() { downgraded <- l.Downgrade(t.Context()) }()
		none(t, "a reader of the process, while a Txn is under way,", local)
		none(t, "a reader of another process, while a Txn is under way,", remote)
		if err := <-wrote; err != nil {
			t.Error(err)
		}
		if err := <-downgraded; err != nil || l.Mode() != zklock.Shared {
			t.Errorf("Downgrade: %v, and the lock is held as %v", err, l.Mode())
		}
		mustRelease(t, soon(t, "a reader of the process", local))
		mustRelease(t, soon(t, "a reader of another process", remote))
		mustRelease(t, l)
	})
}

// A writer's Txn whose outcome is unknown may be applied later. If it were applied while readers
// hold, they would see the change. So Downgrade refuses as long as there is such a Txn.
func TestNoDowngradeUnderATxnInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		gate := &faultdriver.Gate{}
		faults := faultdriver.Path("/data", faultdriver.On(faultdriver.Multi, faultdriver.Late(gate)))
		c, other := connect(t, faultdriver.Wrap(e.Connector(), faults), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		if _, err := l.Txn(t.Context(), driver.CreateOp("/data", nil, driver.Persistent, driver.OpenACL(driver.PermAll))); !errors.Is(err, zklock.ErrUnknownOutcome) {
			t.Fatal(err)
		}
		if err := l.Downgrade(t.Context()); !errors.Is(err, zklock.ErrUnknownOutcome) || l.Mode() != zklock.Exclusive || !l.Valid() {
			t.Errorf("Downgrade: %v, and the lock is held as %v", err, l.Mode())
		}
		readers := []chan *zklock.Lock{acquiring(t, c.RWMutex("x").Reader(), t.Context()), acquiring(t, other.RWMutex("x").Reader(), t.Context())}
		for _, got := range readers {
			none(t, "a reader", got)
		}
		mustRelease(t, l)
		var held []*zklock.Lock
		for _, got := range readers {
			held = append(held, soon(t, "a reader", got))
		}
		gate.Release()
		synctest.Wait()
		if _, err := plain(t, e).Get(t.Context(), "/data"); !errors.Is(err, driver.ErrNoNode) {
			t.Errorf("the Txn was applied while readers hold: %v", err)
		}
		for _, l := range held {
			mustRelease(t, l)
		}
	})
}

// A release takes at most one session timeout, for everything that it waits for together.
func TestReleaseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Any(
			faultdriver.Path("/data", faultdriver.On(faultdriver.Multi, faultdriver.Delay(6*time.Second))),
			faultdriver.If("release", func(op faultdriver.Op) bool {
				return (op.Kind == faultdriver.Delete || op.Kind == faultdriver.Multi && len(op.Paths) == 1) && len(op.Paths[0]) > len("/zklock/x/")
			}, faultdriver.Hang()))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		go func() {
			_, _ = l.Txn(t.Context(), driver.CreateOp("/data", nil, driver.Persistent, driver.OpenACL(driver.PermAll)))
		}()
		synctest.Wait()
		began := time.Now()
		err := l.Release(t.Context())
		if took := time.Since(began); took > 10*time.Second || !errors.Is(err, zklock.ErrReleasePending) {
			t.Errorf("Release returned after %v, with a session timeout of 10s: %v", took, err)
		}
	})
}

// Verify returns ErrReleased if the handle is released while it asks the ensemble.
func TestVerifyOfAHandleReleasedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.RWMutex("x").Reader().Acquire(t.Context()))
		joined := mustLock(t)(c.RWMutex("x").Reader().Acquire(t.Context()))
		verified := make(chan error, 1)
		go func() { verified <- joined.Verify(t.Context()) }()
		synctest.Wait()
		mustRelease(t, joined)
		if err := <-verified; !errors.Is(err, zklock.ErrReleased) {
			t.Error(err)
		}
		mustRelease(t, l)
	})
}
