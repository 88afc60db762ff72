package zklock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// B14
func TestLostReplyAndAFailingListLeaveNoOrphan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Any(
			faultdriver.Once(about(faultdriver.On(faultdriver.Multi, faultdriver.LoseReply()))),
			faultdriver.First(20, faultdriver.On(faultdriver.Children, faultdriver.Drop())))
		a, b := connect(t, faultdriver.Wrap(e.Connector(), faults), map[string]string{"connect_timeout": "2s"}), connect(t, e.Connector(), nil)
		if _, err := a.Mutex("x").Acquire(t.Context()); !errors.Is(err, zklock.ErrUnavailable) {
			t.Errorf("acquire: %v", err)
		}
		mustRelease(t, mustLock(t)(b.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Minute))))
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}
