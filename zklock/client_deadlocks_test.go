package zklock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestDeadlocksThatExist: circles of registered waits are shown while they last, and waits that converge
// are not. The clients cannot list the register, so they end no wait.
func TestDeadlocksThatExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		open := func() *zklock.Client {
			blind := onRegister(faultdriver.On(faultdriver.Children, faultdriver.Drop()))
			return connect(t, faultdriver.Wrap(e.Connector(), blind), nil)
		}
		a, b, c, operator := open(), open(), open(), connect(t, e.Connector(), nil)
		shown := func() (texts []string) {
			t.Helper()
			found, err := operator.Deadlocks(t.Context())
			if err != nil {
				t.Error(err)
			}
			for _, d := range found {
				for _, l := range d.Cycle {
					texts = append(texts, l.Label+": "+l.Held+">"+l.Waiting)
				}
			}
			return texts
		}
		if got := shown(); got != nil {
			t.Errorf("without a register: %q", got)
		}
		x, y, z := mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.Mutex("y").Acquire(t.Context())), mustLock(t)(c.Mutex("z").Acquire(t.Context()))
		behind := nested(t, z, c.Mutex("x"), zklock.WithWait(30*time.Second)) // converges
		first := nested(t, x, a.Mutex("y"), zklock.WithLabel("move"), zklock.WithWait(20*time.Second))
		time.Sleep(5 * time.Second)
		if got := shown(); registered(e) != 2 || got != nil {
			t.Errorf("of %d waits: %q", registered(e), got)
		}
		second := nested(t, y, b.Mutex("x"), zklock.WithLabel("merge"), zklock.WithWait(10*time.Second))
		time.Sleep(5 * time.Second)
		if got := shown(); registered(e) != 3 || len(got) != 2 || got[0] != "merge: y>x" || got[1] != "move: x>y" {
			t.Errorf("of %d waits: %q", registered(e), got)
		}
		<-second
		time.Sleep(time.Second)
		if got := shown(); got != nil {
			t.Errorf("after the end of a wait: %q", got)
		}
		<-first
		<-behind
		for _, l := range []*zklock.Lock{x, y, z} {
			mustRelease(t, l)
		}
	})
}
