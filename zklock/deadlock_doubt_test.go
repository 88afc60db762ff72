package zklock_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// makeRegister makes the register of waits, with these rights for all.
func makeRegister(t *testing.T, e *memdriver.Ensemble, rights driver.Perm) {
	t.Helper()
	s := plain(t, e)
	if _, err := s.Create(t.Context(), "/zklock", nil, driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), "/zklock/%waits", nil, driver.Persistent, driver.OpenACL(rights)); err != nil {
		t.Fatal(err)
	}
}

// TestRegistrationOfUnknownOutcome: a registration was made, and the reply to its create was lost. Its wait ends
// before it is registered again. The lock that it lists is passed on inside the process only when the registration
// is gone, and no other client takes the wait for one that lasts.
func TestRegistrationOfUnknownOutcome(t *testing.T) {
	slow := func() faultdriver.Injector { return faultdriver.Once(faultdriver.Delay(3 * time.Second)) }
	for name, c := range map[string]struct {
		then   faultdriver.Injector
		passed bool
	}{
		"it is found and removed": {faultdriver.None(), true},
		"its removal is slow":     {faultdriver.On(faultdriver.Delete, slow()), false},
		"the Sync is slow":        {faultdriver.On(faultdriver.Sync, slow()), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				makeRegister(t, e, driver.PermAll)
				inj := onRegister(faultdriver.Any(faultdriver.On(faultdriver.Multi, faultdriver.Once(faultdriver.LoseReply())), c.then))
				a, b := connect(t, faultdriver.Wrap(e.Connector(), inj), map[string]string{"handover_time": "1m"}), connect(t, e.Connector(), nil)
				x, y := mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.Mutex("y").Acquire(t.Context()))
				passing(t, a.Mutex("y")) // it leads, and the nested wait stands behind it
				ended := nested(t, x, a.Mutex("y"), zklock.WithWait(1500*time.Millisecond))
				next := acquiring(t, a.Mutex("x"), t.Context())
				time.Sleep(1400 * time.Millisecond)
				if n := registered(e); n != 1 {
					t.Fatalf("%d waits are registered, want 1", n)
				}
				<-ended
				mustRelease(t, x)
				x = <-next
				if passed := x.Token().Turn > 0; passed != c.passed || passed && registered(e) != 0 {
					t.Errorf("the lock was passed on: %v, want %v; %d registrations exist", passed, c.passed, registered(e))
				}
				other := nested(t, y, b.Mutex("x"))
				time.Sleep(6 * time.Second)
				if n := registered(e); n != 1 {
					t.Errorf("%d waits are registered, want that of the other client", n)
				}
				mustRelease(t, x)
				granted(t, <-other)
				mustRelease(t, y)
				time.Sleep(time.Second) // the one that leads has its turn
			})
		})
	}
}

// TestRegistrationsThatMayNotBeDeleted: a client may create registrations, and may not delete them. After the first
// refusal it makes no more, and says so once. What it has made counts until its session ends: a lock that it lists is
// not passed on. Circles inside the client are found.
func TestRegistrationsThatMayNotBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		makeRegister(t, e, driver.PermCreate|driver.PermRead)
		var log bytes.Buffer
		a := connect(t, e.Connector(), map[string]string{"handover_time": "1m"}, zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		b := connect(t, e.Connector(), map[string]string{"deadlock_timeout": "0s"})
		x, y := mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.Mutex("y").Acquire(t.Context()))
		for range 3 {
			if o := <-nested(t, x, a.Mutex("y"), zklock.WithWait(3*time.Minute)); !errors.Is(o.err, zklock.ErrNotAcquired) {
				t.Error(o.err)
			}
		}
		synctest.Wait()
		if n := registered(e); n != 1 {
			t.Errorf("%d registrations were made, want 1", n)
		}
		if n := strings.Count(log.String(), "refuse to register waits"); n != 1 {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
		next := acquiring(t, a.Mutex("x"), t.Context())
		mustRelease(t, x)
		x = <-next
		if x.Token().Turn > 0 {
			t.Error("the lock was passed on while a registration lists its node")
		}
		next = acquiring(t, a.Mutex("x"), t.Context())
		mustRelease(t, x)
		x = <-next
		if x.Token().Turn != 1 {
			t.Error("a lock that no registration lists was not passed on")
		}
		mustRelease(t, x)
		mustRelease(t, y)
		wantVictims(t, circleIn(t, a), 1)
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if n := registered(e); n != 0 {
			t.Errorf("%d waits are registered after the client was closed", n)
		}
	})
}

// circleIn makes a circle inside one client, and returns the errors of those that were ended because of a deadlock.
func circleIn(t *testing.T, c *zklock.Client) (victims []*zklock.DeadlockError) {
	t.Helper()
	held := []*zklock.Lock{mustLock(t)(c.Mutex("p").Acquire(t.Context())), mustLock(t)(c.Mutex("q").Acquire(t.Context()))}
	waits := []<-chan outcome{nested(t, held[0], c.Mutex("q")), nil}
	time.Sleep(100 * time.Millisecond)
	waits[1] = nested(t, held[1], c.Mutex("p")) // the last
	for _, i := range []int{1, 0} {
		o := <-waits[i]
		var d *zklock.DeadlockError
		if errors.As(o.err, &d) {
			victims = append(victims, d)
		} else if o.err != nil {
			t.Error(i, o.err)
		} else {
			mustRelease(t, o.lock)
		}
		mustRelease(t, held[i])
	}
	return victims
}

// TestRightToDeleteThatComesLate: an operator gives a client the right to delete registrations. The client removes
// what stands, and its next circle with another client is found.
func TestRightToDeleteThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var allowed atomic.Bool
		refuse := onRegister(faultdriver.If("not allowed", func(op faultdriver.Op) bool { return op.Kind == faultdriver.Delete && !allowed.Load() }, faultdriver.Random(1, 1, faultdriver.Fail(driver.ErrNoAuth))))
		a, b := connect(t, faultdriver.Wrap(e.Connector(), refuse), nil, zklock.WithLogger(slog.New(slog.DiscardHandler))), connect(t, e.Connector(), nil)
		x, y := mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.Mutex("y").Acquire(t.Context()))
		if o := <-nested(t, x, a.Mutex("y"), zklock.WithWait(2*time.Second)); !errors.Is(o.err, zklock.ErrNotAcquired) {
			t.Error(o.err)
		}
		time.Sleep(3 * time.Minute)
		if n := registered(e); n != 1 {
			t.Errorf("%d waits are registered, want 1", n)
		}
		allowed.Store(true)
		time.Sleep(3 * time.Minute)
		if n := registered(e); n != 0 {
			t.Errorf("%d waits are registered, want none", n)
		}
		first, second := nested(t, x, a.Mutex("y")), nested(t, y, b.Mutex("x"))
		wantVictims(t, settle(t, e, []*zklock.Lock{x, y}, []<-chan outcome{first, second}), 1)
	})
}
