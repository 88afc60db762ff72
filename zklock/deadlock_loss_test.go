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

// TestMemberOfACircleThatIsKilled: the process of one member dies, at each moment from before the first wait is
// registered until the circle has ended. It sends nothing more, and the ensemble ends its session when that has
// been silent for its timeout. Until then its registration counts. At most one of the others fails, and only if
// they do not wait for the session of a process that was to end the circle.
func TestMemberOfACircleThatIsKilled(t *testing.T) {
	const members = 3
	const apart, begin, end = 40 * time.Millisecond, 960 * time.Millisecond, 1160 * time.Millisecond
	for dead, want := range map[int][2]bool{ // whether there is a moment of no victim, and one of a victim
		0:           {true, true}, // before its wait is registered; later
		1:           {true, true},
		members - 1: {true, false},
	} {
		t.Run(fmt.Sprint("member", dead), func(t *testing.T) {
			var seen [2]bool
			for at := begin; at < end; at += 5 * time.Millisecond {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New(memdriver.WithLatency(5 * time.Millisecond))
					var gone atomic.Bool
					connectors := []driver.Connector{e.Connector(), e.Connector(), e.Connector()}
					connectors[dead] = faultdriver.Wrap(connectors[dead], faultdriver.If("of a dead process", func(faultdriver.Op) bool { return gone.Load() }, faultdriver.Hang()))
					of, held := ringOf(t, e, connectors...)
					ended := make([]<-chan outcome, members)
					began := time.Now()
					for i := range ended {
						ended[i] = nested(t, held[i], wants(of, i))
						time.Sleep(apart)
					}
					time.Sleep(time.Until(began.Add(at)))
					gone.Store(true)
					thaw := e.Freeze(e.Sessions()[dead])
					alive := append([]<-chan outcome(nil), ended...)
					alive[dead] = nil
					var victims int
					select {
					case o := <-ended[dead]: // before its process died
						if wantDeadlock(t, o, "r2>r0", "r0>r1", "r1>r2"); dead != members-1 {
							t.Errorf("killed after %v: %v", at, o.err)
						}
					default:
						victims = len(settle(t, e, held, alive))
						if victims > 1 {
							t.Errorf("killed after %v: %d acquisitions failed, want at most 1", at, victims)
						}
						seen[min(victims, 1)] = true
					}
					if n := len(e.Sessions()); n != members-1 {
						t.Errorf("killed after %v: %d sessions, want those of the others", at, n)
					}
					gone.Store(false)
					thaw() // its client can be closed
				})
				if t.Failed() {
					return
				}
			}
			if seen != want {
				t.Errorf("none of the others failed: %v, and one: %v; want %v", seen[0], seen[1], want)
			}
		})
	}
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
						slow := onRegister(faultdriver.On(faultdriver.Sync, faultdriver.Once(faultdriver.Delay(700*time.Millisecond))))
						of, held := ringOf(t, e, e.Connector(), e.Connector(), faultdriver.Wrap(e.Connector(), slow))
						queue, err := of[loser].Contenders(t.Context(), "r1")
						if err != nil || len(queue) != 1 {
							t.Fatal(queue, err)
						}
						began := time.Now()
						ended := []<-chan outcome{nested(t, held[0], wants(of, 0)), nil, nil}
						time.Sleep(100 * time.Millisecond)
						ended[loser] = nestedWith(t, held[loser], goesOn, wants(of, loser))
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
		slow := onRegister(faultdriver.On(faultdriver.Sync, faultdriver.Once(faultdriver.Delay(700*time.Millisecond))))
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
		time.Sleep(1200 * time.Millisecond) // it has seen the circle, and its Sync is under way
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

// nestedWith acquires like nested. With goesOn the wait does not end with the lock.
func nestedWith(t *testing.T, held *zklock.Lock, goesOn bool, a zklock.Acquirer) <-chan outcome {
	t.Helper()
	if !goesOn {
		return nested(t, held, a)
	}
	ended := make(chan outcome, 1)
	ctx, cancel := held.Context(t.Context())
	go func() {
		defer cancel()
		began := time.Now()
		l, err := a.Acquire(context.WithoutCancel(ctx), zklock.WithWait(time.Minute))
		ended <- outcome{l, err, time.Since(began)}
	}()
	synctest.Wait()
	return ended
}
