package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// outcome is how a nested acquisition has ended, and how long it has waited.
type outcome struct {
	lock *zklock.Lock
	err  error
	took time.Duration
}

// pair opens two clients, each of which has a lock that the other may want: a has x, and b has y.
func pair(t *testing.T, first, second driver.Connector) (a, b *zklock.Client, x, y *zklock.Lock) {
	t.Helper()
	a, b = connect(t, first, nil), connect(t, second, nil)
	x, y = apart(t, a, b)
	return a, b, x, y
}

// apart acquires the locks of a pair.
func apart(t *testing.T, a, b *zklock.Client) (x, y *zklock.Lock) {
	t.Helper()
	return mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.Mutex("y").Acquire(t.Context()))
}

// goesOn releases a lock for which a nested acquisition waits, and then what that has got and had.
func goesOn(t *testing.T, wanted *zklock.Lock, w <-chan outcome, held *zklock.Lock) {
	t.Helper()
	mustRelease(t, wanted)
	granted(t, <-w)
	mustRelease(t, held)
}

// stillWaits checks that a nested acquisition has not ended.
func stillWaits(t *testing.T, w <-chan outcome, what string) {
	t.Helper()
	select {
	case o := <-w:
		t.Fatalf("%s: %v", what, o.err)
	default:
	}
}

// nested acquires with a context that carries held, in the background.
func nested(t *testing.T, held *zklock.Lock, a zklock.Acquirer, opts ...zklock.AcquireOption) <-chan outcome {
	t.Helper()
	ctx, cancel := held.Context(t.Context())
	t.Cleanup(cancel)
	return nestedIn(ctx, a, opts...)
}

// nestedIn acquires with a context, in the background.
func nestedIn(ctx context.Context, a zklock.Acquirer, opts ...zklock.AcquireOption) <-chan outcome {
	ended := make(chan outcome, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		began := time.Now()
		l, err := a.Acquire(ctx, opts...)
		ended <- outcome{l, err, time.Since(began)}
	}()
	synctest.Wait()
	return ended
}

// granted checks that a nested acquisition has succeeded, and releases its lock.
func granted(t *testing.T, o outcome) {
	t.Helper()
	if o.err != nil {
		t.Errorf("after %v: %v", o.took, o.err)
		return
	}
	mustRelease(t, o.lock)
}

// wantDeadlock checks that an acquisition was ended because of a circle of these waits, written as
// "holds>waits for", and returns the error.
func wantDeadlock(t *testing.T, o outcome, circle ...string) *zklock.DeadlockError {
	t.Helper()
	var d *zklock.DeadlockError
	if !errors.As(o.err, &d) || !errors.Is(o.err, zklock.ErrDeadlock) || !errors.Is(o.err, zklock.ErrNotAcquired) || errors.Is(o.err, context.Canceled) {
		t.Fatalf("after %v: %v", o.took, o.err)
	}
	var got []string
	for _, l := range d.Cycle {
		got = append(got, l.Held+">"+l.Waiting)
	}
	if strings.Join(got, " ") != strings.Join(circle, " ") {
		t.Errorf("circle %v, want %v", got, circle)
	}
	return d
}

// registered returns how many waits are registered.
func registered(e *memdriver.Ensemble) int { return strings.Count(e.Dump(), " w1-") }

// onlyRegistration returns the name of the only znode in the register.
func onlyRegistration(t *testing.T, s driver.Session) string {
	t.Helper()
	names, _, err := s.Children(t.Context(), "/zklock/%waits")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	return names[0]
}

func TestTwoClientsInOppositeOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		x, y := apart(t, a, b)
		first := nested(t, x, a.Mutex("y"), zklock.WithLabel("POST /move"))
		time.Sleep(300 * time.Millisecond)
		second := nested(t, y, b.Mutex("x"), zklock.WithLabel("POST /merge"))
		o := <-second
		d := wantDeadlock(t, o, "y>x", "x>y")
		if d.Cycle[0].Label != "POST /merge" || d.Cycle[1].Label != "POST /move" || d.Cycle[0].PID == 0 || d.Cycle[0].Node == "" {
			t.Errorf("%+v", d.Cycle)
		}
		if o.took > 2*time.Second {
			t.Errorf("found after %v", o.took)
		}
		t.Log(o.err)
		goesOn(t, y, first, x)
		synctest.Wait()
		if n := registered(e); n != 0 {
			t.Errorf("%d waits are registered", n)
		}
		if s := b.Stats(); s.Deadlocks != 1 || a.Stats().Deadlocks != 0 {
			t.Error(s.Deadlocks)
		}
	})
}

func TestRings(t *testing.T) {
	for _, members := range []int{2, 3, 16, 40} {
		for _, clients := range []int{1, 2, 40} {
			t.Run(fmt.Sprint(members, "members", clients, "clients"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { ring(t, members, clients) })
			})
		}
	}
}

func ring(t *testing.T, members, clients int) {
	e := memdriver.New()
	var of []*zklock.Client
	for range clients {
		of = append(of, connect(t, e.Connector(), nil))
	}
	held := make([]*zklock.Lock, members)
	ended := make([]<-chan outcome, members)
	client := func(i int) *zklock.Client { return of[i%clients] }
	for i := range members {
		held[i] = mustLock(t)(client(i).Mutex(fmt.Sprint("r", i)).Acquire(t.Context()))
	}
	for i := range members {
		ended[i] = nested(t, held[i], client(i).Mutex(fmt.Sprint("r", (i+1)%members)))
		time.Sleep(time.Duration(i%3) * time.Millisecond)
	}
	victims := settle(t, e, held, ended)
	if len(victims) != 1 {
		t.Errorf("%d acquisitions failed, want 1", len(victims))
	}
	for _, v := range victims {
		if len(v.Cycle) != members {
			t.Error(v)
		}
	}
}

// settle waits until all acquisitions have ended, as those of members that release what they hold after
// their acquisition has ended, and returns the errors of those that were ended because of a deadlock. It
// checks that all others succeed, and that nothing is left. It leaves out an acquisition that is nil.
func settle(t *testing.T, e *memdriver.Ensemble, held []*zklock.Lock, ended []<-chan outcome) (victims []*zklock.DeadlockError) {
	t.Helper()
	left := len(ended)
	for _, w := range ended {
		if w == nil {
			left--
		}
	}
	for began := time.Now(); left > 0 && time.Since(began) < 50*time.Second; time.Sleep(time.Second) {
		for i := range ended {
			select {
			case o := <-ended[i]:
				var d *zklock.DeadlockError
				switch left--; {
				case o.err == nil:
					mustRelease(t, o.lock)
				case errors.As(o.err, &d):
					victims = append(victims, d)
				default:
					t.Errorf("member %d: %v", i, o.err)
				}
				if err := held[i].Release(t.Context()); err != nil && !errors.Is(err, zklock.ErrReleased) {
					t.Error(err)
				}
			default:
			}
		}
	}
	if left > 0 {
		t.Errorf("%d acquisitions still wait", left)
	}
	for began := time.Now(); registered(e) > 0 && time.Since(began) < time.Minute; time.Sleep(time.Second) {
	}
	if n := registered(e); n != 0 {
		t.Errorf("%d waits are registered:\n%s", n, e.Dump())
	}
	return victims
}

// TestConvergingWaitsAreNoDeadlock: many waits for one holder, which itself waits for a lock that will be
// released.
func TestConvergingWaitsAreNoDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		end := mustLock(t)(b.Mutex("end").Acquire(t.Context()))
		x := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		held, waits := []*zklock.Lock{x}, []<-chan outcome{nested(t, x, a.Mutex("end"))}
		for i := range 10 {
			c := connect(t, e.Connector(), nil)
			for j, wanted := range []string{"x", "end"} {
				l := mustLock(t)(c.Mutex(fmt.Sprint("own", i, j)).Acquire(t.Context()))
				held, waits = append(held, l), append(waits, nested(t, l, c.Mutex(wanted)))
			}
		}
		time.Sleep(20 * time.Second)
		if n := registered(e); n != len(waits) {
			t.Errorf("%d waits are registered, want %d", n, len(waits))
		}
		mustRelease(t, end)
		if victims := settle(t, e, held, waits); victims != nil {
			t.Error(victims)
		}
	})
}

// TestNestedWaitsCostNothingAtFirst: before deadlock_timeout has passed, a wait whose context carries a
// lock sends the requests of any other.
func TestNestedWaitsCostNothingAtFirst(t *testing.T) {
	costOf := func(timeout time.Duration) (ops memcontrol.Ops) {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			c := config(t, e.Connector(), map[string]string{"session_timeout": "1h"}) // so no heartbeat falls into the time that counts
			c.DeadlockTimeout = timeout
			a, b := openConfig(t, c, nil), openConfig(t, c, nil)
			x, y := apart(t, a, b)
			ops = cost(e, func() {
				ended := nested(t, x, a.Mutex("y"))
				time.Sleep(900 * time.Millisecond)
				mustRelease(t, y)
				mustRelease(t, (<-ended).lock)
			})
			mustRelease(t, x)
		})
		return ops
	}
	wantCost(t, "a nested wait of 900 ms", costOf(time.Second), costOf(-1))
	if long := costOf(100 * time.Millisecond); long == costOf(-1) {
		t.Error("the test does not notice a registration")
	}
}
