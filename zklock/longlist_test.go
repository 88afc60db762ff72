package zklock_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// tooLong makes each list of the queue of x fail, as one does that no driver can read.
func tooLong() faultdriver.Injector {
	fail := faultdriver.Fail(driver.ErrReplyTooLarge)
	return faultdriver.Path("/zklock/x", faultdriver.Any(faultdriver.On(faultdriver.Children, fail), faultdriver.On(faultdriver.WatchChildren, fail)))
}

// Nothing can be learned of a queue that is too long for one list. Every call says so at once,
// and leaves nothing behind. The holder and other names do not notice.
func TestQueueThatIsTooLongForAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.NewToggle(tooLong())
		a, b := connect(t, faultdriver.Wrap(e.Connector(), faults), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(b.Mutex("x").Acquire(t.Context()))
		other := mustLock(t)(b.Mutex("y").Acquire(t.Context()))
		faults.On()
		wants := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, driver.ErrReplyTooLarge) || !strings.Contains(err.Error(), "/zklock/x") || strings.Count(err.Error(), "one reply can list") != 1 {
				t.Errorf("%s: %v, want ErrReplyTooLarge and the path", what, err)
			}
		}
		began := time.Now()
		_, err := a.Mutex("x").Acquire(t.Context())
		wants("Acquire", err)
		_, err = a.Mutex("x").TryAcquire(t.Context())
		wants("TryAcquire", err)
		_, err = zklock.All(a.Mutex("w"), a.Mutex("x")).Acquire(t.Context())
		wants("All", err)
		_, err = a.Contenders(t.Context(), "x")
		wants("Contenders", err)
		for _, err := range a.Watch(t.Context(), "x") {
			wants("Watch", err)
			break
		}
		synctest.Wait() // what All had of w is removed in the background
		names := ""
		for info, err := range a.Locks(t.Context(), "") {
			if names += info.Name; info.Name == "x" {
				wants("Locks", err)
			} else if err != nil {
				t.Errorf("Locks: %s: %v", info.Name, err)
			}
		}
		if names != "xy" {
			t.Errorf("Locks returned the names %q, want x and y", names)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("the calls took %v", d)
		}
		synctest.Wait()
		if n := nodes(e); n != 2 {
			t.Errorf("%d nodes, want those of the two holders:\n%s", n, e.Dump())
		}
		if !held.Valid() || held.Verify(t.Context()) != nil {
			t.Error("the holder has lost the lock")
		}
		faults.Off()
		next := acquiring(t, a.Mutex("x"), t.Context())
		mustRelease(t, held)
		mustRelease(t, <-next)
		mustRelease(t, other)
	})
}

// The reply to a create is lost, and the list that would show the node is too long. Its client
// lists again until it can delete the node.
func TestLostReplyAndATooLongListLeaveNoOrphan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		lost := faultdriver.NewCounter(faultdriver.Once(about(faultdriver.On(faultdriver.Multi, faultdriver.LoseReply()))))
		faults := faultdriver.Any(lost, faultdriver.First(5, tooLong()))
		a, b := connect(t, faultdriver.Wrap(e.Connector(), faults), nil), connect(t, e.Connector(), nil)
		if _, err := a.Mutex("x").Acquire(t.Context()); !errors.Is(err, driver.ErrReplyTooLarge) || lost.Struck() != 1 {
			t.Errorf("acquire: %v, want ErrReplyTooLarge after one lost reply", err)
		}
		if n := nodes(e); n != 1 {
			t.Errorf("%d nodes, want the one of the lost reply:\n%s", n, e.Dump())
		}
		mustRelease(t, mustLock(t)(b.Mutex("x").Acquire(t.Context(), zklock.WithWait(5*time.Minute))))
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}
