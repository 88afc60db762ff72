package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// ringOf opens a client for each member of a ring. Member i has the lock r<i>, on the session that is number i
// of the ensemble's.
func ringOf(t *testing.T, e *memdriver.Ensemble, connectors ...driver.Connector) (of []*zklock.Client, held []*zklock.Lock) {
	t.Helper()
	for i, c := range connectors {
		of = append(of, connect(t, c, map[string]string{"session_timeout": "10s"}))
		held = append(held, mustLock(t)(of[i].Mutex(fmt.Sprint("r", i)).Acquire(t.Context())))
	}
	if n := len(e.Sessions()); n != len(connectors) {
		t.Fatalf("%d sessions of %d clients", n, len(connectors))
	}
	return of, held
}

// wants returns the lock that member i of a ring waits for: that of the next member.
func wants(of []*zklock.Client, i int) zklock.Acquirer {
	return of[i].Mutex(fmt.Sprint("r", (i+1)%len(of)))
}

// TestMemberOfACircleThatIsLost: the session of one member ends. Then the circle ends by itself.
func TestMemberOfACircleThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		of, held := ringOf(t, e, e.Connector(), e.Connector())
		first, second := nested(t, held[0], wants(of, 0)), nested(t, held[1], wants(of, 1))
		e.Expire(e.Sessions()[0])
		if o := <-first; !errors.Is(o.err, zklock.ErrLost) {
			t.Error(o.err)
		}
		granted(t, <-second)
		mustRelease(t, held[1])
		synctest.Wait()
		if n := registered(e); n != 0 {
			t.Errorf("%d waits are registered", n)
		}
	})
}

// TestMemberOfACircleThatIsKilled: the process of a member dies, at each moment from before the first wait is
// registered until the circle has ended. It sends nothing more, and the ensemble ends its session when that has
// been silent for its timeout. Until then its registration counts. So one wait fails if the circle was registered,
// and if the process of the wait that is to fail lives. If it died, none fails, and the end of its session ends the
// circle. All other waits are granted.
func TestMemberOfACircleThatIsKilled(t *testing.T) {
	const apart, from, to = 40 * time.Millisecond, 960 * time.Millisecond, 1280 * time.Millisecond
	for dead := range 3 {
		t.Run(fmt.Sprint("member", dead), func(t *testing.T) {
			seen := map[int]bool{} // how many waits have failed
			for at := from; at < to && !t.Failed(); at += 5 * time.Millisecond {
				synctest.Test(t, func(t *testing.T) { seen[killed(t, dead, apart, at)] = true })
			}
			if !seen[0] || !seen[1] || len(seen) != 2 {
				t.Errorf("waits that have failed: %v, want none in some runs, and one in the others", seen)
			}
		})
	}
}

// killed has the process of a member of a ring of three die, and returns how many waits have failed because of a
// deadlock. The wait of member i begins i times apart after the first, and the process dies at a time after that.
func killed(t *testing.T, dead int, apart, at time.Duration) int {
	e := memdriver.New(memdriver.WithLatency(5 * time.Millisecond))
	var gone atomic.Bool
	connectors := []driver.Connector{e.Connector(), e.Connector(), e.Connector()}
	connectors[dead] = faultdriver.Wrap(connectors[dead], faultdriver.If("of a dead process", func(faultdriver.Op) bool { return gone.Load() }, faultdriver.Hang()))
	of, held := ringOf(t, e, connectors...)
	ended := make([]<-chan outcome, len(of))
	began := time.Now()
	for i := range ended {
		ended[i] = nested(t, held[i], wants(of, i))
		time.Sleep(apart)
	}
	time.Sleep(time.Until(began.Add(at)))
	gone.Store(true)
	thaw := e.Freeze(e.Sessions()[dead])
	victims := 0
	select {
	case o := <-ended[dead]: // before its process died
		wantDeadlock(t, o, "r2>r0", "r0>r1", "r1>r2")
		victims++
	default:
	}
	ended[dead] = nil // a dead process says nothing, and releases nothing
	others := len(settle(t, e, held, ended))
	if others > 0 && dead == len(of)-1 {
		t.Errorf("killed after %v: %d waits have failed, and the circle was that of the dead one", at, others)
	}
	if n := len(e.Sessions()); n != len(of)-1 {
		t.Errorf("killed after %v: %d sessions, want those of the others", at, n)
	}
	gone.Store(false)
	thaw() // its client can be closed
	return victims + others
}

// TestLossInACircle: a member of a ring of three loses its lock while all wait, before its wait is registered, as
// one of the circle's waits that are registered, or between the two looks of the last one. Its wait ends, or goes
// on without the lock. Then no wait fails because of a deadlock: the circle is over.
func TestLossInACircle(t *testing.T) {
	const loser = 1
	losses := map[string]func(t *testing.T, e *memdriver.Ensemble, node string){
		"its session ends": func(_ *testing.T, e *memdriver.Ensemble, _ string) { e.Expire(e.Sessions()[loser]) },
		"its node is deleted": func(t *testing.T, e *memdriver.Ensemble, node string) {
			if err := memcontrol.Of(e).Delete(node); err != nil {
				t.Fatal(err)
			}
		},
	}
	for when, at := range map[string]time.Duration{
		"before its wait is registered": 500 * time.Millisecond, "before the circle is registered": 1150 * time.Millisecond, "between the two looks": 1500 * time.Millisecond,
	} {
		for loss, lose := range losses {
			for _, goesOn := range []bool{false, true} {
				t.Run(fmt.Sprint(loss, " ", when, ", and its wait goes on: ", goesOn), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						e := memdriver.New()
						slow := onRegister(faultdriver.On(faultdriver.Get, faultdriver.Once(faultdriver.Delay(700*time.Millisecond))))
						of, held := ringOf(t, e, e.Connector(), e.Connector(), faultdriver.Wrap(e.Connector(), slow))
						queue, err := of[loser].Contenders(t.Context(), "r1")
						if err != nil || len(queue) != 1 {
							t.Fatal(queue, err)
						}
						began := time.Now()
						ended := []<-chan outcome{nested(t, held[0], wants(of, 0)), nil, nil}
						time.Sleep(100 * time.Millisecond)
						ctx, cancel := held[loser].Context(t.Context())
						defer cancel()
						if goesOn {
							ctx = context.WithoutCancel(ctx)
						}
						ended[loser] = nestedIn(ctx, wants(of, loser))
						time.Sleep(100 * time.Millisecond)
						ended[2] = nested(t, held[2], wants(of, 2))
						time.Sleep(time.Until(began.Add(at)))
						lose(t, e, "/zklock/r1/"+queue[0].Node)
						lost := ended[loser]
						if !goesOn {
							if o := <-lost; !errors.Is(o.err, zklock.ErrLost) || errors.Is(o.err, zklock.ErrDeadlock) {
								t.Error(o.err)
							}
							lost = nil
						}
						if err := held[loser].Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
							t.Error(err)
						}
						time.Sleep(2500 * time.Millisecond)
						if n := registered(e); n != 1 {
							t.Errorf("%d waits are registered, want that of the last member: the first one waits no longer, and the loser holds nothing", n)
						}
						wantVictims(t, settle(t, e, held, []<-chan outcome{ended[0], lost, ended[2]}), 0)
					})
				})
			}
		}
	}
}

// TestNodeThatIsGoneAtTheSecondLook: the process of a member stops while its wait is registered, and an operator
// deletes the node that it holds, between the two looks of the last wait of the circle. The registrations of the
// others say what was so: the wait for that node is for another name, too, so it goes on.
func TestNodeThatIsGoneAtTheSecondLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := onRegister(faultdriver.On(faultdriver.Get, faultdriver.Once(faultdriver.Delay(700*time.Millisecond))))
		of, held := ringOf(t, e, e.Connector(), e.Connector(), faultdriver.Wrap(e.Connector(), slow), e.Connector())
		queue, err := of[1].Contenders(t.Context(), "r1")
		if err != nil || len(queue) != 1 {
			t.Fatal(queue, err)
		}
		first := nested(t, held[0], zklock.All(of[0].Mutex("r1"), of[0].Mutex("r3")))
		time.Sleep(100 * time.Millisecond)
		stopped := nested(t, held[1], of[1].Mutex("r2"))
		time.Sleep(100 * time.Millisecond)
		last := nested(t, held[2], of[2].Mutex("r0"))
		time.Sleep(1200 * time.Millisecond) // it has seen the circle, and reads its registrations
		thaw := e.Freeze(e.Sessions()[1])
		if err := memcontrol.Of(e).Delete("/zklock/r1/" + queue[0].Node); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := registered(e); n != 3 {
			t.Errorf("%d waits are registered, want 3", n)
		}
		thaw()
		if o := <-stopped; !errors.Is(o.err, zklock.ErrLost) {
			t.Error(o.err)
		}
		mustRelease(t, held[3])
		wantVictims(t, settle(t, e, held, []<-chan outcome{first, nil, last}), 0)
	})
}
