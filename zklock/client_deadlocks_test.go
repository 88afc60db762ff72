package zklock_test

import (
	"slices"
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

// TestNestedWaits: what the holders of names wait for is known to an operator, also of those that wait behind
// another one of their process and have no queue node. An All waits in one of the queues that it stands in.
func TestNestedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		web, jobs, operator := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		shown := func() (texts []string) {
			t.Helper()
			var locks []zklock.LockInfo
			for l, err := range operator.Locks(t.Context(), "") {
				if err != nil {
					t.Error(err)
				}
				locks = append(locks, l)
			}
			found, err := operator.NestedWaits(t.Context(), locks)
			if err != nil {
				t.Error(err)
			}
			for _, w := range found {
				i := slices.IndexFunc(locks, func(l zklock.LockInfo) bool { return l.Name == w.Held })
				if !slices.ContainsFunc(locks[i].Contenders, func(c zklock.Contender) bool { return c.Zxid == w.Zxid }) {
					t.Errorf("%+v is of no contender: %+v", w, locks[i])
				}
				texts = append(texts, w.Held+">"+w.Waiting)
			}
			slices.Sort(texts)
			return texts
		}
		var ends []<-chan outcome
		var locks []*zklock.Lock
		locks = append(locks, mustLock(t)(jobs.Mutex("stock").Acquire(t.Context())), mustLock(t)(jobs.Mutex("b").Acquire(t.Context())))
		for _, name := range []string{"cart/1", "cart/2", "cart/3"} {
			cart := mustLock(t)(web.Mutex(name).Acquire(t.Context()))
			locks = append(locks, cart)
			ends = append(ends, nested(t, cart, web.Mutex("stock"), zklock.WithWait(time.Minute)))
		}
		ends = append(ends, nestedIn(t.Context(), zklock.All(web.Mutex("a"), web.Mutex("b"))))
		time.Sleep(5 * time.Second)
		want := []string{"a>b", "cart/1>stock", "cart/2>stock", "cart/3>stock"}
		if got := shown(); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		for _, end := range ends {
			<-end
		}
		time.Sleep(time.Second)
		if got := shown(); got != nil {
			t.Errorf("when the waits are over: %q", got)
		}
		for _, l := range locks {
			mustRelease(t, l)
		}
	})
}
