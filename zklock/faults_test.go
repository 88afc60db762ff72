package zklock_test

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Each request is lost in turn: before it was applied, after it was applied, or so that it is
// applied when the client no longer expects that. Exclusion holds, no node stays behind, and
// both clients can go on.
func TestEveryRequestMayBeLost(t *testing.T) {
	kinds := []faultdriver.Fault{
		faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.NotSent(), faultdriver.Fail(driver.ErrThrottled),
		faultdriver.LateAfter(3 * time.Millisecond), faultdriver.LateAfter(40 * time.Millisecond), faultdriver.LateAfter(2 * time.Second),
		faultdriver.HangReply(), faultdriver.Hang(),
	}
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			runs := 0
			for _, fault := range kinds {
				for n := 1; ; n++ {
					struck := false
					synctest.Test(t, func(t *testing.T) {
						counter := faultdriver.NewCounter(faultdriver.Nth(n, about(fault)))
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
			t.Logf("%d runs", runs)
		})
	}
}

// Two requests of one client may be lost, too: one right after the other, or, with
// ZKLOCK_PAIRS=all, any two.
func TestEveryTwoRequestsMayBeLost(t *testing.T) {
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
				ours, theirs := faultdriver.NewCounter(faultdriver.Nth(n, about(first))), faultdriver.NewCounter(faultdriver.Nth(n+gap, about(second)))
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
			t.Logf("%d runs", runs)
		})
	}
}

func lose(t *testing.T, room int, run func(in *inside, a, b *zklock.Client), faults faultdriver.Injector) {
	t.Helper()
	e := memdriver.New(memdriver.WithLatency(time.Millisecond))
	a := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
	b := connect(t, e.Connector(), nil)
	in := &inside{room: room}
	began := time.Now()
	run(in, a, b)
	if d := time.Since(began); d > 30*time.Second {
		in.fault("the scenario took %v, want at most 30s", d)
	}
	quiet := time.NewTimer(25 * time.Second) // for late requests and clean-ups
	<-quiet.C
	if dump := e.Dump(); strings.Contains(dump, "_c_") {
		in.fault("nodes were left behind:\n%s", dump)
	}
	for _, c := range []*zklock.Client{a, b} {
		l, err := c.Mutex("x").Acquire(context.Background(), zklock.WithWait(20*time.Second))
		if err != nil {
			in.fault("acquire afterwards: %v", err)
			continue
		}
		if err := l.Release(context.Background()); err != nil {
			in.fault("release afterwards: %v", err)
		}
	}
	for _, f := range in.faults {
		t.Errorf("%v: %s", faults, f)
	}
}
