package simulation

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/census"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// together calls functions concurrently and waits for all of them.
func together(f ...func()) {
	var wg sync.WaitGroup
	for _, f := range f {
		wg.Go(f)
	}
	wg.Wait()
}

// scenarios are small cases of contention between two clients. Faults strike the first
// client only. Together the cases send every kind of request that the library has.
var scenarios = []struct {
	name string
	room int
	run  func(in *corekit.Section, a, b *zklock.Client)
}{
	{"mutex", 1, func(in *corekit.Section, a, b *zklock.Client) {
		together(
			func() { in.Work(b.Mutex("x"), 2, 20*time.Millisecond) },
			func() { in.Work(a.Mutex("x"), 2, 20*time.Millisecond) },
		)
	}},
	{"requeue", 1, func(in *corekit.Section, a, b *zklock.Client) {
		// Each lock is held for longer than handover_time: with each release the next
		// waiter gets a new place at the tail.
		work := func() { in.Work(a.Mutex("x"), 1, 150*time.Millisecond) }
		together(work, work, work, func() { in.Work(b.Mutex("x"), 2, 150*time.Millisecond) })
	}},
	{"semaphore", 2, func(in *corekit.Section, a, b *zklock.Client) {
		theirs := func() { in.Work(b.Semaphore("x", 2), 2, 20*time.Millisecond) }
		ours := func() { in.Work(a.Semaphore("x", 2), 2, 30*time.Millisecond) }
		together(theirs, ours, theirs, ours)
	}},
	{"all", 1, func(in *corekit.Section, a, b *zklock.Client) {
		// Each pair of these excludes each other, on one name or on both.
		together(
			func() { in.Work(zklock.All(a.Mutex("x"), a.Mutex("y")), 2, 20*time.Millisecond) },
			func() { in.Work(zklock.All(b.Mutex("y"), b.RWMutex("x").Reader()), 1, 20*time.Millisecond) },
			func() { in.Work(zklock.All(b.Mutex("x"), b.Mutex("y")), 1, 20*time.Millisecond) },
		)
	}},
	{"readers", 2, func(in *corekit.Section, a, b *zklock.Client) {
		writer := func(c *zklock.Client) {
			if l := in.Acquire(c.Mutex("x")); l != nil {
				in.Enter()
				in.Enter() // twice, which leaves no room for a reader
				pause := time.NewTimer(20 * time.Millisecond)
				<-pause.C
				in.Leave()
				in.Leave()
				in.Release(l)
			}
		}
		together(
			func() { in.Work(a.RWMutex("x").Reader(), 2, 150*time.Millisecond) },
			func() { in.Work(b.RWMutex("x").Reader(), 1, 30*time.Millisecond) },
			func() { writer(b) },
			func() { writer(a) },
		)
	}},
	{"downgrade", 1, func(in *corekit.Section, a, b *zklock.Client) {
		together(
			func() {
				l := in.Acquire(a.Mutex("x"))
				if l == nil {
					return
				}
				in.Enter()
				if err := l.Downgrade(context.Background()); err != nil {
					in.Fault("downgrade: %v", err)
				}
				in.Leave()
				in.Release(l)
			},
			func() { in.Work(b.Mutex("x"), 2, 20*time.Millisecond) },
			func() {
				if l := in.Acquire(b.RWMutex("x").Reader()); l != nil {
					in.Release(l)
				}
			},
		)
	}},
	{"cancel", 1, func(in *corekit.Section, a, b *zklock.Client) {
		// Waits end in every way there is. None leaves a node that the waiters behind it
		// would wait for.
		give := func(err error, l *zklock.Lock) {
			switch {
			case err == nil:
				in.Enter()
				in.Leave()
				in.Release(l)
			case !errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable):
				in.Fault("a wait that was given up: %v", err)
			}
		}
		together(
			func() { in.Work(b.Mutex("x"), 3, 40*time.Millisecond) },
			func() {
				ctx, cancel := context.WithTimeout(context.Background(), 25*time.Millisecond)
				defer cancel()
				l, err := a.Mutex("x").Acquire(ctx)
				give(err, l)
				l, err = a.Mutex("x").TryAcquire(context.Background())
				give(err, l)
				l, err = zklock.All(a.Mutex("x"), a.Mutex("y")).Acquire(context.Background(), zklock.WithWait(30*time.Millisecond))
				give(err, l)
			},
			func() { in.Work(a.Mutex("x"), 1, 20*time.Millisecond) },
		)
	}},
}

// Each request is lost in turn: before it was applied, after it was applied, or so that it is
// applied when the client no longer expects that. Exclusion holds, no node stays behind, and
// both clients can go on.
func TestEveryRequestMayBeLost(t *testing.T) {
	corekit.Short(t)
	kinds := []faultdriver.Fault{
		faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.NotSent(), faultdriver.Fail(driver.ErrThrottled),
		faultdriver.LateAfter(3 * time.Millisecond), faultdriver.LateAfter(40 * time.Millisecond), faultdriver.LateAfter(2 * time.Second),
		faultdriver.HangReply(), faultdriver.Hang(),
	}
	if corekit.Race && !long.On() {
		kinds = kinds[:2] // it takes twenty times as long
	}
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			runs := 0
			for _, fault := range kinds {
				for n := 1; ; n++ {
					struck := false
					synctest.Test(t, func(t *testing.T) {
						counter := faultdriver.NewCounter(faultdriver.Nth(n, corekit.About(fault)))
						lose(t, sc.room, sc.run, counter)
						struck = counter.Struck() > 0
					})
					if !struck {
						break
					}
					runs++
				}
				if t.Failed() {
					return
				}
			}
			if runs < 5*len(kinds) {
				t.Errorf("only %d runs met a fault", runs)
			}
			t.Logf("%d runs\n%v", runs, census.Of(caseSettings))
		})
	}
}

// Two requests of one client may be lost, too: one right after the other, or, with
// ZKLOCK_PAIRS=all, any two.
func TestEveryTwoRequestsMayBeLost(t *testing.T) {
	corekit.Short(t)
	far := 1
	if os.Getenv("ZKLOCK_PAIRS") == "all" {
		far = math.MaxInt
	} else {
		long.Test(t, "every request is lost together with the next one")
	}
	kinds := []faultdriver.Fault{faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.LateAfter(8 * time.Millisecond)}
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			runs := 0
			// pair reports whether both faults met a request, since there were enough.
			pair := func(first, second faultdriver.Fault, n, gap int) bool {
				ours, theirs := faultdriver.NewCounter(faultdriver.Nth(n, corekit.About(first))), faultdriver.NewCounter(faultdriver.Nth(n+gap, corekit.About(second)))
				synctest.Test(t, func(t *testing.T) { lose(t, sc.room, sc.run, faultdriver.Any(ours, theirs)) })
				runs++
				return ours.Struck() > 0 && theirs.Struck() > 0
			}
			for _, first := range kinds {
				for _, second := range kinds {
					for n, more := 1, true; more; n++ {
						more = false
						for gap := 0; gap < far && pair(first, second, n, gap); gap++ {
							more = true
							if t.Failed() {
								return
							}
						}
					}
				}
			}
			t.Logf("%d runs\n%v", runs, census.Of(caseSettings))
		})
	}
}

// caseSettings are those of all scenarios, of which each has one name.
var caseSettings = census.Settings{Tick: 2 * time.Second, Session: corekit.SessionTimeout, Servers: 1, Distance: time.Millisecond, Clients: 2, Name: len("x")}

func lose(t *testing.T, room int, run func(in *corekit.Section, a, b *zklock.Client), faults faultdriver.Injector) {
	t.Helper()
	e := memdriver.New(memdriver.WithTickTime(caseSettings.Tick), memdriver.WithLatency(caseSettings.Distance))
	a := corekit.Connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
	b := corekit.Connect(t, e.Connector(), nil)
	in := &corekit.Section{Room: room}
	began := time.Now()
	run(in, a, b)
	if d := time.Since(began); d > 30*time.Second {
		in.Fault("the scenario took %v, want at most 30s", d)
	}
	quiet := time.NewTimer(25 * time.Second) // for late requests and clean-ups
	<-quiet.C
	if dump := e.Dump(); strings.Contains(dump, "_c_") {
		in.Fault("nodes were left behind:\n%s", dump)
	}
	for _, c := range []*zklock.Client{a, b} {
		l, err := c.Mutex("x").Acquire(context.Background(), zklock.WithWait(20*time.Second))
		if err != nil {
			in.Fault("acquire afterwards: %v", err)
			continue
		}
		if err := l.Release(context.Background()); err != nil {
			in.Fault("release afterwards: %v", err)
		}
	}
	for _, f := range in.Faults {
		t.Errorf("%v: %s", faults, f)
	}
}
