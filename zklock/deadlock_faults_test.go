package zklock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// onRegister lets an injector see only requests about the register of waits.
func onRegister(inj faultdriver.Injector) faultdriver.Injector {
	return faultdriver.If("about the register", func(op faultdriver.Op) bool {
		return len(op.Paths) > 0 && strings.Contains(op.Paths[0], "/%waits")
	}, inj)
}

// TestDeadlockWithFaultsOfTheRegister: the circle is found nevertheless, and nothing is left.
func TestDeadlockWithFaultsOfTheRegister(t *testing.T) {
	for name, inj := range map[string]faultdriver.Injector{
		"the replies to two creates are lost": faultdriver.On(faultdriver.Multi, faultdriver.First(2, faultdriver.LoseReply())),
		"two creates are not sent":            faultdriver.On(faultdriver.Multi, faultdriver.First(2, faultdriver.Drop())),
		"two lists fail":                      faultdriver.On(faultdriver.Children, faultdriver.First(2, faultdriver.Drop())),
		"two reads fail":                      faultdriver.On(faultdriver.Get, faultdriver.First(2, faultdriver.Drop())),
		"two deletes fail":                    faultdriver.On(faultdriver.Delete, faultdriver.First(2, faultdriver.Drop())),
		"every fifth request gets no reply":   faultdriver.Random(7, 0.2, faultdriver.LoseReply()),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				open := func() *zklock.Client {
					return connect(t, faultdriver.Wrap(e.Connector(), onRegister(inj)), nil)
				}
				a, b := open(), open()
				wantVictims(t, circle(t, e, nil, party{a, a.Mutex("x"), a.Mutex("y"), nil}, party{b, b.Mutex("y"), b.Mutex("x"), nil}), 1)
			})
		})
	}
}

// TestLateRegistration: the create of a registration is applied long after its wait has ended. It goes.
func TestLateRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		gate := new(faultdriver.Gate)
		late := onRegister(faultdriver.On(faultdriver.Multi, faultdriver.Once(faultdriver.Late(gate))))
		a, _, x, y := pair(t, faultdriver.Wrap(e.Connector(), late), e.Connector())
		w := nested(t, x, a.Mutex("y"), zklock.WithWait(5*time.Second))
		if o := <-w; !errors.Is(o.err, zklock.ErrNotAcquired) {
			t.Error(o.err)
		}
		gate.Release()
		time.Sleep(corekit.SessionTimeout * 5 / 2)
		if n := registered(e); n != 0 {
			t.Errorf("%d waits are registered:\n%s", n, e.Dump())
		}
		mustRelease(t, x)
		mustRelease(t, y)
	})
}

// TestRegisterThatIsForbidden: the servers refuse registrations. Waits end as they would without, the log
// says so once, and circles inside one client are still found.
func TestRegisterThatIsForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var log bytes.Buffer
		forbidden := faultdriver.Wrap(e.Connector(), onRegister(faultdriver.Any(faultdriver.On(faultdriver.Multi, faultdriver.Fail(driver.ErrNoAuth)),
			faultdriver.On(faultdriver.Create, faultdriver.Fail(driver.ErrNoAuth)), faultdriver.On(faultdriver.Children, faultdriver.Fail(driver.ErrNoAuth)))))
		a := connect(t, forbidden, nil, zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		b := connect(t, e.Connector(), nil)
		x, y := apart(t, a, b)
		first, second := nested(t, x, a.Mutex("y"), zklock.WithWait(30*time.Second)), nested(t, y, b.Mutex("x"), zklock.WithWait(30*time.Second))
		for _, w := range []<-chan outcome{first, second} {
			if o := <-w; !errors.Is(o.err, zklock.ErrNotAcquired) || errors.Is(o.err, zklock.ErrDeadlock) {
				t.Error(o.err)
			}
		}
		synctest.Wait() // for the log, which no caller waits for
		if n := strings.Count(log.String(), "refuse to register waits"); n != 1 {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
		mustRelease(t, x)
		mustRelease(t, y)
		wantVictims(t, circle(t, e, nil, party{a, a.Mutex("x"), a.Mutex("y"), nil}, party{a, a.Mutex("y"), a.Mutex("x"), nil}), 1)
	})
}

// TestRegisterFullOfGarbage: znodes of other programs in the register, and registrations that lie.
func TestRegisterFullOfGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		wantVictims(t, circle(t, e, nil, party{a, a.Mutex("x"), a.Mutex("y"), nil}, party{b, b.Mutex("y"), b.Mutex("x"), nil}), 1)
		s := plain(t, e)
		for i, name := range []string{"w1-", "w1--0000000001", "w1-AAAA-0000000001", "w1-%%%-0000000001", "w2-x-", "lock-0000000001", strings.Repeat("A", 2000), "w1-" + strings.Repeat("A", 1000) + "-0000000002"} {
			for range 20 {
				if _, err := s.Create(t.Context(), "/zklock/%waits/"+name, bytes.Repeat([]byte("{"), i*100), driver.EphemeralSequential, a.ACL()); err != nil {
					t.Fatal(err)
				}
			}
		}
		victims := func() []*zklock.DeadlockError {
			x, y := apart(t, a, b)
			first := nested(t, x, a.Mutex("y"))
			time.Sleep(1500 * time.Millisecond)
			// A copy of what is registered, with data that do not fit: it stands behind all others.
			names, _, err := s.Children(t.Context(), "/zklock/%waits")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if strings.HasPrefix(name, "w1-") && len(name) > 60 && len(name) < 500 {
					if _, err := s.Create(t.Context(), "/zklock/%waits/"+name[:len(name)-10], []byte(`{"behind":[{"path":"/../x"}],"held":[{"path":"/x","node":"../y"}]}`), driver.EphemeralSequential, a.ACL()); err != nil {
						t.Fatal(err)
					}
				}
			}
			second := nested(t, y, b.Mutex("x"))
			var got []*zklock.DeadlockError
			for i, w := range []<-chan outcome{second, first} {
				var d *zklock.DeadlockError
				switch o := <-w; {
				case errors.As(o.err, &d):
					got = append(got, d)
				case o.err != nil:
					t.Error(i, o.err)
				default:
					mustRelease(t, o.lock)
				}
				mustRelease(t, []*zklock.Lock{y, x}[i])
			}
			return got
		}
		wantVictims(t, victims(), 1)
		for info, err := range a.Locks(t.Context(), "") {
			if err != nil || strings.Contains(info.Name, "waits") {
				t.Errorf("%v, %v", info, err)
			}
		}
	})
}

// TestDeadlockThatIsOverIsNotBroken: after the last wait has seen the circle, and before it has looked for
// the second time, another wait gives up. Then none is ended.
func TestDeadlockThatIsOverIsNotBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		hold := onRegister(faultdriver.On(faultdriver.Get, faultdriver.Once(faultdriver.Delay(3*time.Second))))
		a, b, x, y := pair(t, e.Connector(), faultdriver.Wrap(e.Connector(), hold))
		first := nested(t, x, a.Mutex("y"), zklock.WithWait(3*time.Second))
		time.Sleep(100 * time.Millisecond)
		second := nested(t, y, b.Mutex("x"), zklock.WithWait(20*time.Second))
		if o := <-first; !errors.Is(o.err, zklock.ErrNotAcquired) || errors.Is(o.err, zklock.ErrDeadlock) {
			t.Error(o.err)
		}
		time.Sleep(5 * time.Second) // it still holds x, and b's look has ended
		stillWaits(t, second, "the circle was over")
		goesOn(t, x, second, y)
	})
}

// TestOneContextThatWaitsInTwoPlaces: a circle through one of them is found, and does not have the other in it.
func TestOneContextThatWaitsInTwoPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		x, y := apart(t, a, b)
		z := mustLock(t)(c.Mutex("z").Acquire(t.Context()))
		other := nested(t, x, a.Mutex("z"))
		through := nested(t, x, a.Mutex("y"))
		time.Sleep(100 * time.Millisecond)
		last := nested(t, y, b.Mutex("x"))
		wantDeadlock(t, <-last, "y>x", "x>y")
		mustRelease(t, y)
		mustRelease(t, z)
		for _, w := range []<-chan outcome{through, other} {
			granted(t, <-w)
		}
		mustRelease(t, x)
	})
}

// TestReleaseDuringANestedWait: another goroutine releases the lock that a registered wait lists, and the
// servers do not confirm the removal of the registration. Then the lock's place is not passed on: a
// registration never lists a node that another hold has.
func TestReleaseDuringANestedWait(t *testing.T) {
	for _, confirmed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			gate := new(faultdriver.Gate)
			inj := faultdriver.Injector(faultdriver.None())
			if !confirmed {
				inj = onRegister(faultdriver.On(faultdriver.Delete, faultdriver.Once(faultdriver.Late(gate))))
			}
			a, _, x, y := pair(t, faultdriver.Wrap(e.Connector(), inj), e.Connector())
			w := nested(t, x, a.Mutex("y"))
			next := acquiring(t, a.Mutex("x"), t.Context())
			time.Sleep(1100 * time.Millisecond)
			if n := registered(e); n != 1 {
				t.Fatalf("%d waits are registered", n)
			}
			mustRelease(t, x)
			l := <-next
			if handed := l.Token().Turn > 0; handed && !confirmed {
				t.Error("the place was passed on, while a registration lists its node")
			}
			<-w
			gate.Release()
			mustRelease(t, l)
			mustRelease(t, y)
			synctest.Wait()
			if n := registered(e); n != 0 {
				t.Errorf("%d waits are registered", n)
			}
		})
	}
}

// TestCostOfLooks counts the requests of circles and of many waits. Those of the locks are among them: 2 or
// 3 reads for each member of a circle.
func TestCostOfLooks(t *testing.T) {
	run := func(clients, members int, ring bool) (ops memcontrol.Ops) {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			var of []*zklock.Client
			for range clients {
				of = append(of, connect(t, e.Connector(), map[string]string{"session_timeout": "1h", "max_waiters": "0"}))
			}
			top := mustLock(t)(of[0].Mutex("top").Acquire(t.Context()))
			var held []*zklock.Lock
			for i := range members {
				held = append(held, mustLock(t)(of[i%clients].Mutex(fmt.Sprint("r", i)).Acquire(t.Context())))
			}
			var waits []<-chan outcome
			for i := range members {
				wanted := "top"
				if ring {
					wanted = fmt.Sprint("r", (i+1)%members)
				}
				waits = append(waits, nested(t, held[i], of[i%clients].Mutex(wanted), zklock.WithWait(5*time.Second)))
			}
			ops = cost(e, func() { time.Sleep(1200 * time.Millisecond) })
			for i, w := range waits {
				if o := <-w; o.lock != nil {
					mustRelease(t, o.lock)
				}
				mustRelease(t, held[i])
			}
			mustRelease(t, top)
		})
		return ops
	}
	for _, c := range []struct {
		clients, members int
		ring             bool
		most             memcontrol.Ops
	}{
		{2, 2, true, memcontrol.Ops{Children: 2, Gets: 6}},
		{16, 16, true, memcontrol.Ops{Children: 16, Gets: 48}},
		{1, 16, true, memcontrol.Ops{Children: 1, Gets: 32}},
		{1, 1000, false, memcontrol.Ops{Children: 1, Gets: 1}}, // it asks whether the servers read as much as the session's end has
		{corekit.Crowd(100), corekit.Crowd(1000), false, memcontrol.Ops{Children: 2 * corekit.Crowd(100)}},
	} {
		got := run(c.clients, c.members, c.ring)
		t.Logf("%4d clients, %4d nested waits, ring %v: %+v", c.clients, c.members, c.ring, got)
		c.most.Creates, c.most.MultiOps = c.clients, c.members+2*c.clients // how many share a transaction depends on the machine
		if c.ring {
			c.most.MultiOps += 3 * c.members // the victim's has the registrations, and two nodes of each wait at most
		}
		if got.Creates > c.most.Creates || got.Children > c.most.Children || got.Gets > c.most.Gets || got.Syncs > c.most.Syncs || got.MultiOps > c.most.MultiOps {
			t.Errorf("want at most %+v", c.most)
		}
	}
}

// TestMemberThatRegistersAgainWhileTheVictimLeaves: the victim's registration is deleted late, and the other
// member's wait, which was registered long before, registers again meanwhile: its leader has given up.
func TestMemberThatRegistersAgainWhileTheVictimLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := onRegister(faultdriver.On(faultdriver.Multi, faultdriver.Nth(2, faultdriver.Delay(2500*time.Millisecond)))) // the first one registers
		a, b := connect(t, e.Connector(), nil), connect(t, faultdriver.Wrap(e.Connector(), slow), nil)
		x := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		y := mustLock(t)(b.RWMutex("y").Writer().Acquire(t.Context()))
		go func() { // the leader of a's queue of y
			_, _ = a.RWMutex("y").Writer().Acquire(t.Context(), zklock.WithWait(5700*time.Millisecond))
		}()
		synctest.Wait()
		first := nested(t, x, a.RWMutex("y").Reader())
		passing(t, b.Mutex("x")) // the leader of b's queue of x
		time.Sleep(4500 * time.Millisecond)
		second := nested(t, y, b.Mutex("x"))
		wantVictims(t, settle(t, e, []*zklock.Lock{x, y}, []<-chan outcome{first, second}), 1)
	})
}

// TestMemberThatGivesUpWhileTheVictimLeaves: a wait in the local queue ends while another member of its circle is about to
// end. The node that it stood behind stays, and so does that which its context holds. No wait fails.
func TestMemberThatGivesUpWhileTheVictimLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := onRegister(faultdriver.On(faultdriver.Multi, faultdriver.Nth(2, faultdriver.Delay(900*time.Millisecond)))) // the first one registers
		a, b, x, y := pair(t, e.Connector(), faultdriver.Wrap(e.Connector(), slow))
		passing(t, a.Mutex("y")) // it leads
		first := nested(t, x, a.Mutex("y"), zklock.WithWait(3*time.Second))
		time.Sleep(1500 * time.Millisecond)
		second := nested(t, y, b.Mutex("x"))
		if o := <-first; !errors.Is(o.err, zklock.ErrNotAcquired) || errors.Is(o.err, zklock.ErrDeadlock) {
			t.Error(o.err)
		}
		time.Sleep(2 * time.Second)
		stillWaits(t, second, "the other wait has ended")
		mustRelease(t, x)
		granted(t, <-second)
		mustRelease(t, y)
		time.Sleep(time.Second) // the one that leads has its turn
	})
}

// TestMemberThatStaysRegistered: when the last wait of a circle is about to end, the other one is registered again. The
// last one keeps its registration: if each removed its own before it looked, both could do so in turns for ever.
func TestMemberThatStaysRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := onRegister(faultdriver.On(faultdriver.Multi, faultdriver.Nth(2, faultdriver.Delay(900*time.Millisecond)))) // the first one registers
		a, b := connect(t, e.Connector(), nil), connect(t, faultdriver.Wrap(e.Connector(), slow), nil)
		x := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		y := mustLock(t)(b.RWMutex("y").Writer().Acquire(t.Context()))
		go func() { // the leader of a's queue of y
			_, _ = a.RWMutex("y").Writer().Acquire(t.Context(), zklock.WithWait(5700*time.Millisecond))
		}()
		synctest.Wait()
		first := nested(t, x, a.RWMutex("y").Reader())
		time.Sleep(4500 * time.Millisecond)
		second := nested(t, y, b.Mutex("x"))
		is := func(serial string) bool { return regexp.MustCompile(`w1-\S+-` + serial).MatchString(e.Dump()) }
		time.Sleep(1100 * time.Millisecond)
		if !is("0000000000") || !is("0000000001") {
			t.Errorf("want both waits registered while the transaction is under way:\n%s", e.Dump())
		}
		time.Sleep(850 * time.Millisecond)
		if is("0000000000") || !is("0000000001") {
			t.Errorf("the transaction has failed: want the last wait registered as before, and the first one again, later:\n%s", e.Dump())
		}
		wantVictims(t, settle(t, e, []*zklock.Lock{x, y}, []<-chan outcome{first, second}), 1)
	})
}

// TestCallersDeadlockCauseIsNotCounted: a sibling's deadlock is the cause with which the caller's context ends,
// as with errgroup.
func TestCallersDeadlockCauseIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, _, x, y := pair(t, e.Connector(), e.Connector())
		ctx, cancel := x.Context(t.Context())
		defer cancel()
		ctx, cause := context.WithCancelCause(ctx)
		done := make(chan error, 1)
		go func() {
			_, err := a.Mutex("y").Acquire(ctx)
			done <- err
		}()
		synctest.Wait()
		cause(&zklock.DeadlockError{})
		err := <-done
		if !errors.Is(err, context.Canceled) {
			t.Errorf("does not match the context's error: %v", err)
		}
		if n := a.Stats().Deadlocks; n != 0 {
			t.Errorf("%d deadlocks are counted", n)
		}
		mustRelease(t, x)
		mustRelease(t, y)
	})
}

// TestReleaseDoesNotOutlastItsContext: a Release with a context that has ended, or an asynchronous one, does
// not wait for the removal of a registration.
func TestReleaseDoesNotOutlastItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		inj := onRegister(faultdriver.On(faultdriver.Delete, faultdriver.Once(faultdriver.Delay(5*time.Second))))
		a, b := connect(t, faultdriver.Wrap(e.Connector(), inj), nil), connect(t, e.Connector(), nil)
		x, y := mustLock(t)(a.Mutex("x").Acquire(t.Context(), zklock.WithAsyncRelease())), mustLock(t)(b.Mutex("y").Acquire(t.Context()))
		w := nested(t, x, a.Mutex("y"))
		time.Sleep(1100 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		_ = x.Release(ctx)
		if took := time.Since(began); took > 0 {
			t.Errorf("an asynchronous Release took %v", took)
		}
		if o := <-w; !errors.Is(o.err, zklock.ErrNotAcquired) {
			t.Error(o.err)
		}
		mustRelease(t, y)
	})
}

// TestRegistrationThatLies: a program with rights on the register claims that it holds a node of another
// process. Its text cannot fill a log.
func TestRegistrationThatLies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, x, y := pair(t, e.Connector(), e.Connector())
		first := nested(t, x, a.Mutex("y"))
		time.Sleep(1500 * time.Millisecond)
		s := plain(t, e)
		name := onlyRegistration(t, s)
		n, err := s.Get(t.Context(), "/zklock/%waits/"+name)
		if err != nil {
			t.Fatal(err)
		}
		lie := bytes.Replace(n.Data, []byte(`"name":"x"`), []byte(`"name":"`+strings.Repeat("L", 40_000)+`"`), 1)
		if err := s.Delete(t.Context(), "/zklock/%waits/"+name, driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), "/zklock/%waits/"+name[:len(name)-10], lie, driver.EphemeralSequential, a.ACL()); err != nil {
			t.Fatal(err)
		}
		second := nested(t, y, b.Mutex("x"), zklock.WithWait(5*time.Second))
		time.Sleep(3 * time.Second)
		wantNoDeadlocks(t, a)
		if o := <-second; errors.Is(o.err, zklock.ErrDeadlock) {
			t.Errorf("%.200s", o.err)
		}
		goesOn(t, y, first, x)
	})
}

// A wait has ended, and the ensemble has not confirmed the removal of its registration. The caller goes on, but
// the lock that the registration lists is not passed on to another goroutine of the process: another client may
// still see it held, and in a circle.
func TestReleaseAfterAnUnconfirmedRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := onRegister(faultdriver.On(faultdriver.Delete, faultdriver.Once(faultdriver.Delay(3*time.Second))))
		a, b := connect(t, faultdriver.Wrap(e.Connector(), slow), map[string]string{"handover_time": "1m"}), connect(t, e.Connector(), nil)
		x, y := apart(t, a, b)
		passing(t, a.Mutex("y")) // it leads, and the nested wait stands behind it
		ended := nested(t, x, a.Mutex("y"), zklock.WithWait(2*time.Second))
		next := acquiring(t, a.Mutex("x"), t.Context())
		<-ended
		mustRelease(t, x)
		x = <-next
		if turn := x.Token().Turn; turn != 0 {
			t.Errorf("the lock was passed on %d times while %d registrations exist", turn, registered(e))
		}
		other := nested(t, y, b.Mutex("x"))
		time.Sleep(20 * time.Second)
		goesOn(t, x, other, y)
		time.Sleep(time.Second) // the one that leads has its turn
	})
}

// What a wait stands behind changes, and the ensemble takes long to remove its registration. So it has two for a
// while, and another member of the circle sees the older one. One of the two waits ends.
func TestMemberWithTwoRegistrations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := onRegister(faultdriver.On(faultdriver.Delete, faultdriver.Once(faultdriver.Delay(4*time.Second))))
		late := onRegister(faultdriver.Any(faultdriver.On(faultdriver.Get, faultdriver.Once(faultdriver.Delay(2300*time.Millisecond))),
			faultdriver.On(faultdriver.Multi, faultdriver.Nth(2, faultdriver.Delay(2*time.Second)))))
		a, b, c := connect(t, faultdriver.Wrap(e.Connector(), slow), nil), connect(t, faultdriver.Wrap(e.Connector(), late), nil), connect(t, e.Connector(), nil)
		held := []*zklock.Lock{mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.RWMutex("y").Writer().Acquire(t.Context()))}
		go func() { _, _ = c.RWMutex("y").Writer().Acquire(t.Context(), zklock.WithWait(1700*time.Millisecond)) }() // then it changes
		synctest.Wait()
		passing(t, a.RWMutex("y").Reader()) // it leads, so the node that the other wait stands behind stays
		first := nested(t, held[0], a.RWMutex("y").Reader())
		time.Sleep(100 * time.Millisecond)
		waits := []<-chan outcome{first, nested(t, held[1], b.Mutex("x"))}
		var victims atomic.Int32
		var callers sync.WaitGroup
		for i, w := range waits {
			callers.Go(func() {
				switch o := <-w; {
				case errors.Is(o.err, zklock.ErrDeadlock):
					victims.Add(1)
				case o.err != nil:
					t.Error(o.err)
				default:
					mustRelease(t, o.lock)
				}
				time.Sleep(time.Second) // a caller that takes its time to release
				mustRelease(t, held[i])
			})
		}
		callers.Wait()
		if n := victims.Load(); n != 1 {
			t.Errorf("%d acquisitions were ended because of a deadlock, want 1", n)
		}
	})
}
