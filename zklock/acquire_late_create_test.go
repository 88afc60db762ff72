package zklock_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The session timeout of the tests of late creates, and for how long after the loss of a reply a
// server may still read the request from the old connection: see place.horizon.
const (
	lateTimeout = 2 * time.Second
	lateHorizon = 2*lateTimeout + 10*time.Second
)

// lateCreates is a client with two sessions, and two names of which each is on a session of its own.
type lateCreates struct {
	ensemble *memdriver.Ensemble
	operator driver.Session
	client   *zklock.Client
	faults   *faultdriver.Toggle
	refuses  *faultdriver.Toggle  // no list is allowed
	refused  *faultdriver.Counter // of refuses
	silent   time.Duration        // how long the client does not notice that the connection is lost
	n0, n1   string
}

// newLateCreates returns a lateCreates whose znodes and sessions exist. The next transaction of the
// client is applied late, once faults are on.
func newLateCreates(t *testing.T, late time.Duration) *lateCreates {
	t.Helper()
	l := &lateCreates{ensemble: memdriver.New(memdriver.WithLatency(time.Millisecond), memdriver.WithTickTime(lateTimeout/10)), n0: "n0"}
	l.faults = faultdriver.NewToggle(about(faultdriver.Once(faultdriver.On(faultdriver.Multi,
		faultdriver.If("after a while", func(faultdriver.Op) bool { time.Sleep(l.silent); return true }, faultdriver.LateAfter(late))))))
	l.refused = faultdriver.NewCounter(about(faultdriver.On(faultdriver.Children, faultdriver.Fail(driver.ErrNoAuth))))
	l.refuses = faultdriver.NewToggle(l.refused)
	cfg := config(t, faultdriver.Wrap(l.ensemble.Connector(), faultdriver.Any(l.refuses, l.faults)), nil)
	cfg.SessionTimeout, cfg.TickTime, cfg.PoolMaxSessions = lateTimeout, lateTimeout/10, 2
	l.client = openConfig(t, cfg)
	l.operator = plain(t, l.ensemble)
	stay := func(path string) { // the client and the servers do not remove it, however long it is idle
		if _, err := l.operator.Create(t.Context(), path, []byte("zklock"), driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	stay("/zklock")
	stay("/zklock/" + l.n0)
	for _, name := range names(20)[1:] {
		stay("/zklock/" + name)
		mustRelease(t, mustLock(t)(zklock.All(l.client.Mutex(l.n0), l.client.Mutex(name)).Acquire(t.Context())))
		sessions := len(l.ensemble.Sessions())
		mustRelease(t, mustLock(t)(l.client.Mutex(name).Acquire(t.Context())))
		if l.n1 = name; len(l.ensemble.Sessions()) > sessions {
			return l
		}
	}
	t.Fatal("all names are on one session")
	return nil
}

// giveUp begins an acquisition whose transaction is applied late, and whose caller gives up at once.
func (l *lateCreates) giveUp(t *testing.T, a zklock.Acquirer) {
	t.Helper()
	l.faults.On()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := a.Acquire(ctx); err == nil {
		t.Fatal("the acquisition has succeeded")
	}
}

// has reports whether a name has a queue node.
func (l *lateCreates) has(name string) bool {
	children, _, err := l.operator.Children(context.Background(), "/zklock/"+name)
	return err == nil && len(children) > 0
}

// stays returns after how long the node of a name appears, and how long it then stays; at most a time.
func (l *lateCreates) stays(name string, most time.Duration) (from, stay time.Duration) {
	began, step := time.Now(), 5*time.Millisecond
	for !l.has(name) && time.Since(began) < most {
		time.Sleep(step)
	}
	from = time.Since(began)
	for l.has(name) && time.Since(began) < most {
		time.Sleep(step)
	}
	return from, time.Since(began) - from
}

// A create is applied long after its caller has given up, and no goroutine of the client uses the
// names again. Nothing of it stays for longer than a session timeout, for as long as a server may
// read what is left of an old connection.
func TestLateCreateOfNamesThatAreNotUsedAgain(t *testing.T) {
	const odd = lateTimeout / 20 // the client lists at whole session timeouts
	for _, late := range []time.Duration{lateTimeout/2 + odd, lateTimeout + odd, lateTimeout*3/2 + odd, lateTimeout*2 + odd, lateTimeout*3 + odd, lateTimeout + 10*time.Second + odd, lateHorizon - odd} {
		for _, kind := range []string{"one name", "fresh name", "All", "given up before the connection was"} {
			t.Run(kind+" "+late.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLateCreates(t, late)
					var a zklock.Acquirer = l.client.Mutex(l.n1)
					switch kind {
					case "given up before the connection was":
						l.silent = 20 * time.Millisecond
					case "All":
						a = zklock.All(l.client.Mutex(l.n0), l.client.Mutex(l.n1))
					case "fresh name":
						l.n1 = "fresh"
						a = l.client.Mutex(l.n1)
					}
					l.giveUp(t, a)
					from, stay := l.stays(l.n1, 100*time.Second)
					t.Logf("the node appeared after %v and stayed for %v", from, stay)
					if from < late-50*time.Millisecond || from > late+50*time.Millisecond || stay > lateTimeout+50*time.Millisecond {
						t.Errorf("the node appeared after %v and stayed for %v, want %v and at most a session timeout", from, stay, late)
					}
					if n := nodes(l.ensemble); n != 0 {
						t.Errorf("left behind:\n%s", l.ensemble.Dump())
					}
				})
			})
		}
	}
}

// A create is applied after the horizon, its client does not use the name again, and another client
// waits for it. The node stays for at most as long as the create was late, and never for more than
// 10 minutes.
func TestLateCreateBeyondTheHorizon(t *testing.T) {
	for _, late := range []time.Duration{lateHorizon + time.Second, 2 * lateHorizon, 10 * lateHorizon, time.Hour + time.Minute} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLateCreates(t, late)
				cfg := config(t, l.ensemble.Connector(), nil)
				cfg.SessionTimeout, cfg.TickTime = lateTimeout, lateTimeout/10
				other := openConfig(t, cfg)
				l.giveUp(t, l.client.Mutex(l.n1))
				time.Sleep(late + 10*time.Millisecond)
				if !l.has(l.n1) {
					t.Fatalf("the late create was not applied:\n%s", l.ensemble.Dump())
				}
				most := min(late, 10*time.Minute)
				began := time.Now()
				got, err := other.Mutex(l.n1).Acquire(t.Context(), zklock.WithWait(20*time.Minute))
				took := time.Since(began)
				if t.Logf("another client acquired it %v after the late create, error %v", took, err); err != nil {
					t.Fatal(err)
				}
				if took > most+100*time.Millisecond {
					t.Errorf("that took %v, want at most %v", took, most)
				}
				mustRelease(t, got)
				if n := nodes(l.ensemble); n != 0 {
					t.Errorf("left behind:\n%s", l.ensemble.Dump())
				}
			})
		})
	}
}

// A create of two names is applied after its caller has given up. The client's other session waits
// behind the node of the second name, which only the first session has made.
func TestLateCreateSeenByTheOtherSession(t *testing.T) {
	for _, late := range []time.Duration{3 * time.Second, 2 * lateHorizon} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLateCreates(t, late)
				l.giveUp(t, zklock.All(l.client.Mutex(l.n0), l.client.Mutex(l.n1)))
				time.Sleep(late + 10*time.Millisecond)
				if !l.has(l.n1) {
					t.Fatalf("the late create was not applied:\n%s", l.ensemble.Dump())
				}
				began := time.Now()
				for _, name := range []string{l.n0, l.n1} {
					got, err := l.client.Mutex(name).Acquire(t.Context(), zklock.WithWait(98*time.Second))
					if t.Logf("%s was acquired %v after the late create, error %v", name, time.Since(began), err); err != nil {
						t.Fatal(err)
					}
					mustRelease(t, got)
				}
				if took := time.Since(began); took > 100*time.Millisecond {
					t.Errorf("that took %v, want some round trips", took)
				}
				if n := nodes(l.ensemble); n != 0 {
					t.Errorf("left behind:\n%s", l.ensemble.Dump())
				}
			})
		})
	}
}

// While a create is likely to appear, the client lists its name once a session timeout, and at once when
// its caller has given up. After the horizon the pauses double until they are 10 minutes. Close does
// not wait for the horizon.
func TestLookoutsGetRarer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLateCreates(t, 10000*lateHorizon)
		lists := func(d time.Duration) int64 {
			return int64(cost(l.ensemble, func() { time.Sleep(d) }).Children)
		}
		if n := lists(lateHorizon); n != 0 {
			t.Errorf("%d lists although no create is in doubt", n)
		}
		both := zklock.All(l.client.Mutex(l.n0), l.client.Mutex(l.n1))
		mustRelease(t, mustLock(t)(both.Acquire(t.Context()))) // the client knows the znodes again
		l.giveUp(t, both)
		const looks = int64(lateHorizon/lateTimeout) + 1
		if n := lists(lateHorizon + lateTimeout/2); n < 2*looks || n > 2*(looks+2) {
			t.Errorf("%d lists of two names, want about %d", n, 2*looks)
		}
		const doublings = 9 // the last one would be from 512 s to 1024 s
		if n := lists(2 * 10 * time.Minute); n < 2*(doublings-1) || n > 2*(doublings+1) {
			t.Errorf("%d lists of two names in the 20 minutes after the horizon, want about %d", n, 2*doublings)
		}
		if n := lists(time.Hour); n != 2*6 {
			t.Errorf("%d lists of two names in an hour, want one of each name every 10 minutes", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := newLateCreates(t, lateHorizon)
		l.giveUp(t, l.client.Mutex(l.n1))
		began := time.Now()
		if err := l.client.Close(); err != nil || time.Since(began) > 100*time.Millisecond {
			t.Errorf("Close took %v, error %v", time.Since(began), err)
		}
	})
}

// A client that may no longer list a name stops to list it after the horizon.
func TestLookoutsEndWithoutTheRightToList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLateCreates(t, 10000*lateHorizon)
		l.giveUp(t, l.client.Mutex(l.n1))
		time.Sleep(lateTimeout / 2)
		l.refuses.On()
		lists := func(d time.Duration) int {
			before := l.refused.Struck()
			time.Sleep(d)
			return l.refused.Struck() - before
		}
		if n := lists(lateHorizon + lateTimeout); n < int(lateHorizon/lateTimeout)-1 {
			t.Errorf("%d lists until the horizon, want one each session timeout", n)
		}
		if n := lists(time.Hour); n != 0 {
			t.Errorf("%d lists after the horizon although each is refused", n)
		}
	})
}

// A contender that has waited in its process before its create was sent is not late, nor is the next
// holder to which its node is handed over, in what any client shows.
func TestContendersThatWaitedInTheirProcessAreNotLate(t *testing.T) {
	for _, params := range []map[string]string{nil, {"keep": "5s"}} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			c, other := connect(t, e.Connector(), params), connect(t, e.Connector(), nil)
			shown := 0
			look := func(when string) {
				t.Helper()
				time.Sleep(time.Second)
				for _, by := range []*zklock.Client{c, other} {
					found, err := by.Contenders(t.Context(), "x")
					if err != nil {
						t.Fatal(err)
					}
					shown += len(found)
					for _, k := range found {
						if k.Late != 0 || k.Stray {
							t.Errorf("with %v, %s: %+v is shown as late", params, when, k)
						}
					}
				}
			}
			for _, contended := range []bool{true, false} {
				first := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				second := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithLabel("second"))
				synctest.Wait()
				var others chan *zklock.Lock
				if contended {
					others = acquiring(t, other.Mutex("x"), t.Context())
					synctest.Wait()
				}
				reader := acquiring(t, c.RWMutex("x").Reader(), t.Context())
				time.Sleep(30 * time.Second)
				look("while the first one holds")
				mustRelease(t, first)
				look("after the first one")
				if contended {
					mustRelease(t, <-others)
					look("after the other client")
				}
				mustRelease(t, <-second)
				look("while the reader holds")
				mustRelease(t, <-reader)
				look("after all")
			}
			if shown < 10 {
				t.Errorf("%d contenders were shown, which shows little", shown)
			}
		})
	}
}

// While the outcome of a create is open, no session of the client takes its nodes for left over, nor
// the nodes of other clients.
func TestOpenCreateIsLeftAloneByTheOtherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLateCreates(t, 0)
		l.faults.Off()
		slow := faultdriver.NewToggle(about(faultdriver.Once(faultdriver.On(faultdriver.Multi, faultdriver.DelayReply(lateTimeout/2)))))
		cfg := config(t, faultdriver.Wrap(l.ensemble.Connector(), slow), nil)
		cfg.SessionTimeout, cfg.TickTime, cfg.PoolMaxSessions = lateTimeout, lateTimeout/10, 2
		c := openConfig(t, cfg)
		for _, name := range []string{l.n0, l.n1} {
			mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context())))
		}
		others := mustLock(t)(l.client.Mutex(l.n1).Acquire(t.Context()))
		slow.On()
		both := acquiring(t, zklock.All(c.Mutex(l.n0), c.Mutex(l.n1)), t.Context(), zklock.WithoutHandover())
		time.Sleep(10 * time.Millisecond)
		slow.Off()
		behind := acquiring(t, c.Mutex(l.n1), t.Context(), zklock.WithCandidacy())
		for range 10 {
			if _, err := c.Contenders(t.Context(), l.n1); err != nil {
				t.Error(err)
			}
			time.Sleep(lateTimeout / 20)
		}
		if n := nodes(l.ensemble); n != 4 {
			t.Errorf("%d nodes, want those of the other client, of both names, and of the waiter behind them:\n%s", n, l.ensemble.Dump())
		}
		if err := others.Verify(t.Context()); err != nil {
			t.Errorf("the other client's lock: %v", err)
		}
		mustRelease(t, others)
		first := <-both
		none(t, "the waiter behind both names", behind)
		if err := first.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		mustRelease(t, first)
		mustRelease(t, <-behind)
	})
}

// Contenders shows the node of a late create as what it is, in the client that has made it and in
// another one, and the first of the two deletes it.
func TestLateCreateIsShownAsWhatItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = lateHorizon + time.Second
		l := newLateCreates(t, late)
		cfg := config(t, l.ensemble.Connector(), nil)
		cfg.SessionTimeout, cfg.TickTime = lateTimeout, lateTimeout/10
		other := openConfig(t, cfg)
		l.giveUp(t, l.client.Mutex(l.n1))
		time.Sleep(late + 10*time.Millisecond)
		look := func(c *zklock.Client) zklock.Contender {
			t.Helper()
			found, err := c.Contenders(t.Context(), l.n1)
			if err != nil || len(found) != 1 {
				t.Fatalf("contenders %+v, error %v", found, err)
			}
			return found[0]
		}
		if c := look(other); c.Stray || c.Late.Round(time.Second) != late || !c.Held {
			t.Errorf("the other client shows %+v", c)
		}
		if c := look(l.client); !c.Stray || c.Late.Round(time.Second) != late || !c.Held {
			t.Errorf("its own client shows %+v", c)
		}
		time.Sleep(10 * time.Millisecond)
		if l.has(l.n1) {
			t.Error("the client has shown the node and not deleted it")
		}
		held := mustLock(t)(l.client.Mutex(l.n1).Acquire(t.Context()))
		if c := look(l.client); c.Stray || c.Late != 0 {
			t.Errorf("its own client shows a lock that is held as %+v", c)
		}
		mustRelease(t, held)
	})
}

// A client that watches a name deletes the node of a late create of its own as soon as it appears, and
// shows what it was.
func TestLateCreateOfAWatchedName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLateCreates(t, lateHorizon+time.Second)
		l.giveUp(t, l.client.Mutex(l.n1))
		ctx, cancel := context.WithTimeout(t.Context(), lateHorizon+2*time.Second)
		defer cancel()
		var seen []int
		for q, err := range l.client.Watch(ctx, l.n1) {
			if err != nil {
				break
			}
			if seen = append(seen, len(q)); len(q) > 0 && (!q[0].Stray || q[0].Late == 0) {
				t.Errorf("Watch shows %+v", q[0])
			}
		}
		if !slices.Equal(seen, []int{0, 1, 0}) {
			t.Errorf("Watch has shown %v contenders, want none, one and none", seen)
		}
	})
}

// A create of a permit is given up as lost and sent again, and both are applied. The second node is
// not the holder's, and must not take a permit away for as long as the lock is held.
func TestLateCreateOfAHeldPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLateCreates(t, 3*time.Second)
		l.faults.On()
		held := mustLock(t)(l.client.Semaphore(l.n1, 2).Acquire(t.Context()))
		cfg := config(t, l.ensemble.Connector(), nil)
		cfg.SessionTimeout, cfg.TickTime, cfg.PoolMaxSessions = lateTimeout, lateTimeout/10, 1
		other := openConfig(t, cfg)
		time.Sleep(3 * time.Second)
		if n := nodes(l.ensemble); n != 2 {
			t.Fatalf("%d nodes, want the holder's and its twin:\n%s", n, l.ensemble.Dump())
		}
		began := time.Now()
		got, err := other.Semaphore(l.n1, 2).Acquire(t.Context(), zklock.WithWait(98*time.Second))
		if t.Logf("the second permit was acquired %v after the late create, error %v", time.Since(began), err); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > lateTimeout+100*time.Millisecond || !held.Valid() {
			t.Errorf("that took %v, want at most a session timeout; the first permit is valid: %v", took, held.Valid())
		}
		mustRelease(t, got)
		mustRelease(t, held)
	})
}
