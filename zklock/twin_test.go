package zklock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A's create is applied late, B queues behind it, and A's second try behind B:
// A waits for B on x, and B for A's twin on y.
func TestTwinOfAllOnItsSecondName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		gate := &faultdriver.Gate{}
		faults := about(faultdriver.On(faultdriver.Multi, faultdriver.Script(faultdriver.Late(gate), faultdriver.Delay(100*time.Millisecond))))
		a, b := connect(t, faultdriver.Wrap(e.Connector(), faults), nil), connect(t, e.Connector(), nil)
		all := func(c *zklock.Client) zklock.Acquirer { return zklock.All(c.Mutex("x"), c.Mutex("y")) }
		gotA := acquiring(t, all(a), t.Context())
		time.Sleep(50 * time.Millisecond)
		if gate.Release() != 1 {
			t.Fatal("nothing was late")
		}
		gotB := acquiring(t, all(b), t.Context())
		time.Sleep(time.Minute)
		select {
		case l := <-gotB:
			mustRelease(t, l)
			mustRelease(t, <-gotA)
		default:
			t.Errorf("nobody got in within a minute:\n%s", e.Dump())
		}
	})
}
