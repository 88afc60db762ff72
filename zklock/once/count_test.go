package once_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

// requests returns the requests of f, without Syncs and pings.
func requests(e *memdriver.Ensemble, f func()) memcontrol.Ops {
	synctest.Wait()
	a := memcontrol.Of(e).Ops()
	f()
	synctest.Wait()
	return minus(memcontrol.Of(e).Ops(), a)
}

func minus(b, a memcontrol.Ops) memcontrol.Ops {
	return memcontrol.Ops{
		Creates: b.Creates - a.Creates, Deletes: b.Deletes - a.Deletes, Sets: b.Sets - a.Sets, Multis: b.Multis - a.Multis, MultiOps: b.MultiOps - a.MultiOps,
		Gets: b.Gets - a.Gets, Watches: b.Watches - a.Watches, WatchChildren: b.WatchChildren - a.WatchChildren, WatchExists: b.WatchExists - a.WatchExists,
		Children: b.Children - a.Children, Events: b.Events - a.Events,
	}
}

// A call of Do costs what a lock costs, and a read. If it runs its slot, it costs one transaction
// more. The first call for a name costs one more, too.
func TestDoCountsItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector())
		do(t, c, "first", "1", nil, true) // creates the root
		for i, want := range []struct {
			what string
			slot int
			ran  bool
			more memcontrol.Ops
		}{
			{"the first slot of a name", 1, true, memcontrol.Ops{Gets: 1, Multis: 2, MultiOps: 4}},
			{"a slot that has run", 1, false, memcontrol.Ops{Gets: 1}},
			{"the next slot", 2, true, memcontrol.Ops{Gets: 1, Multis: 1, MultiOps: 2}},
			{"another one", 3, true, memcontrol.Ops{Gets: 1, Multis: 1, MultiOps: 2}},
			{"a slot that has run, again", 3, false, memcontrol.Ops{Gets: 1}},
		} {
			lock := requests(e, func() { // of a name that was used as often
				l, err := c.Mutex("x").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			slot := requests(e, func() { do(t, c, "y", fmt.Sprint(want.slot), nil, want.ran) })
			if got := minus(slot, lock); got != want.more {
				t.Errorf("call %d, %s, cost %+v more than a lock, want %+v", i, want.what, got, want.more)
			}
		}
	})
}

// A process that is stopped between the read of the ledger and the call of its job does not call
// it when it goes on: its lease is over, and another process may run the slot. Its client may notice
// before the transaction is sent, or by its answer.
func TestProcessThatWasStoppedBeforeTheJobDoesNotRunIt(t *testing.T) {
	for _, noticed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			stopped := false
			c := connect(t, faultcontrol.Control(e.Connector(), func(op faultdriver.Op) faultdriver.Fault {
				if op.Kind == faultdriver.Multi && strings.Contains(strings.Join(op.Paths, " "), "~x") && !stopped {
					stopped = true
					lease.AddSuspended(time.Hour) // no timer of the process has noticed
					if noticed {
						time.Sleep(time.Minute)
					}
				}
				return faultdriver.None()
			}))
			ran, err := once.Do(t.Context(), c, "x", "1", func(context.Context) error { t.Error("the job was called"); return nil })
			if ran || !errors.Is(err, zklock.ErrLost) || !stopped {
				t.Errorf("noticed %v: %v, %v; want false and ErrLost", noticed, ran, err)
			}
			do(t, c, "x", "1", nil, true)
		})
	}
}
