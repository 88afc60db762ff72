package once_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

// onLedger lets an injector see transactions on a ledger only.
func onLedger(inj faultdriver.Injector) faultdriver.Injector {
	return faultdriver.If("on a ledger", func(op faultdriver.Op) bool {
		return op.Kind == faultdriver.Multi && strings.Contains(strings.Join(op.Paths, " "), "~")
	}, inj)
}

// A write of the ledger whose request or reply is lost is repeated until its outcome is known.
func TestWriteWithAnUnknownOutcome(t *testing.T) {
	for name, fault := range map[string]faultdriver.Fault{
		"reply lost": faultdriver.LoseReply(), "request lost": faultdriver.Drop(), "not sent": faultdriver.NotSent(),
		"applied late": faultdriver.LateAfter(time.Second),
	} {
		for nth := range 4 { // the creation, then the write of each of three slots
			t.Run(fmt.Sprint(name, " ", nth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New()
					c := connect(t, faultdriver.Wrap(e.Connector(), onLedger(faultdriver.Nth(nth+1, fault))))
					for i := range 3 {
						do(t, c, "x", fmt.Sprint(i+1), nil, true)
						do(t, c, "x", fmt.Sprint(i+1), nil, false)
					}
					time.Sleep(time.Minute)
					do(t, c, "x", "3", nil, false)
					if err := once.Forget(t.Context(), c, "x"); err != nil {
						t.Error(err)
					}
					do(t, c, "x", "1", nil, true)
				})
			})
		}
	}
}

// Forget repeats its delete in the same way.
func TestForgetWithAnUnknownOutcome(t *testing.T) {
	for name, fault := range map[string]faultdriver.Fault{"reply lost": faultdriver.LoseReply(), "request lost": faultdriver.Drop()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				c := connect(t, faultdriver.Wrap(e.Connector(), onLedger(faultdriver.Nth(3, fault))))
				do(t, c, "x", "1", nil, true)
				if err := once.Forget(t.Context(), c, "x"); err != nil {
					t.Error(err)
				}
				if strings.Contains(e.Dump(), "~") {
					t.Errorf("the ledger is still there:\n%s", e.Dump())
				}
			})
		})
	}
}

// If the lock is lost while the outcome of the write is not known, ran is true, and the error
// says both.
func TestOutcomeThatStaysUnknown(t *testing.T) {
	for _, applied := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			fault := faultdriver.Drop()
			if applied {
				fault = faultdriver.LoseReply()
			}
			struck := false
			c := connect(t, faultcontrol.Control(e.Connector(), func(op faultdriver.Op) faultdriver.Fault {
				switch ledger := strings.Contains(strings.Join(op.Paths, " "), "~x"); {
				case ledger && op.Kind == faultdriver.Multi && !struck:
					struck = true
					return fault
				case ledger && op.Kind == faultdriver.Get && struck: // Do looks whether it was applied
					e.KillSession(op.Session)
				}
				return faultdriver.None()
			}))
			other := connect(t, e.Connector())
			do(t, other, "x", "1", nil, true)
			ran, err := once.Do(t.Context(), c, "x", "2", func(context.Context) error { return nil })
			if !ran || !errors.Is(err, zklock.ErrUnknownOutcome) || !errors.Is(err, zklock.ErrLost) {
				t.Errorf("%v, %v; want true, ErrUnknownOutcome and ErrLost", ran, err)
			}
			do(t, other, "x", "2", nil, !applied)
		})
	}
}

// A holder that is stopped between its job and the write of the ledger writes nothing once
// another process has run the slot, or a later one.
func TestStoppedHolderWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector()), connect(t, e.Connector())
		ran, err := once.Do(t.Context(), a, "x", "1", func(context.Context) error {
			e.Break("/zklock/x") // as if the session had expired long ago
			do(t, b, "x", "1", nil, true)
			do(t, b, "x", "2", nil, true)
			return nil
		})
		if !ran || !errors.Is(err, zklock.ErrLost) {
			t.Errorf("%v, %v; want ErrLost", ran, err)
		}
		do(t, a, "x", "2", nil, false)
		do(t, a, "x", "3", nil, true)
	})
}

// A fleet whose clocks differ, whose requests fail at random, and whose sessions expire at
// random: Do returns nil for each slot in one process exactly, and slots and tokens rise.
func TestFleet(t *testing.T) {
	const seeds, slots = 20, 30
	runs := 0
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runs += fleet(t, seed, slots) })
		})
	}
	if runs < seeds*slots*21/20 {
		t.Errorf("%d runs of %d slots: hardly any has failed", runs, seeds*slots)
	}
}

// fleet runs the slots of one fleet, and returns how often a job was called.
func fleet(t *testing.T, seed uint64, slots int) (calls int) {
	const processes, each = 6, 5 * time.Second
	e := memdriver.New()
	type run struct {
		process, slot int
		token         zklock.Token
		err           error
	}
	results := make(chan run, 10000)
	began := time.Now()
	var running atomic.Int32
	process := func(i int, r *rand.Rand) {
		faults := faultdriver.NewToggle(faultdriver.Random(r.Uint64(), 0.02, faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.NotSent()))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults))
		ahead := time.Duration(r.Int64N(int64(time.Minute)))
		for slot := range slots {
			time.Sleep(time.Until(began.Add(time.Duration(slot)*each - ahead + time.Minute)))
			for tries := 0; ; tries++ {
				var token zklock.Token
				ran, err := once.Do(t.Context(), c, "x", fmt.Sprintf("%04d", slot), func(ctx context.Context) error {
					l, held := zklock.FromContext(ctx)
					if !held {
						return context.Cause(ctx)
					}
					if n := running.Add(1); n > 1 {
						t.Errorf("%d jobs run at once", n)
					}
					defer running.Add(-1)
					token = l.Token()
					for range r.IntN(6) {
						time.Sleep(time.Millisecond)
						if ctx.Err() != nil {
							return context.Cause(ctx)
						}
					}
					if r.IntN(10) == 0 {
						return errJob
					}
					return nil
				})
				if ran {
					results <- run{i, slot, token, err}
				}
				if err == nil {
					break
				}
				if tries > 100 {
					t.Errorf("process %d, slot %d: %v", i, slot, err)
					return
				}
				time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
			}
		}
	}
	r := rand.New(rand.NewPCG(seed, 1))
	done := make(chan struct{})
	for i := range processes {
		mine := rand.New(rand.NewPCG(seed, uint64(i)+2))
		go func() { defer func() { done <- struct{}{} }(); process(i, mine) }()
	}
	stop, chaosEnded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(chaosEnded)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(r.Int64N(int64(5 * time.Second)))):
			}
			if all := e.Sessions(); len(all) > 0 {
				victim := all[r.IntN(len(all))]
				if r.IntN(2) == 0 {
					e.KillConnection(victim)
					continue
				}
				cut := memdriver.AroundSession(victim) // for longer than its timeout, or not
				e.Partition(cut)
				time.Sleep(time.Duration(r.Int64N(int64(20 * time.Second))))
				e.Heal(cut)
			}
		}
	}()
	for range processes {
		<-done
	}
	close(stop)
	<-chaosEnded
	close(results)
	var runs []run
	for r := range results {
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b run) int { return a.token.Compare(b.token) }) // in the order of the grants
	finished := make([]int, slots)
	unknown := make([]bool, slots) // a run of the slot may have been recorded
	last := -1
	for _, r := range runs {
		switch {
		case errors.Is(r.err, zklock.ErrUnknownOutcome):
			unknown[r.slot] = true
		case r.err == nil && r.slot <= last:
			t.Errorf("process %d has run slot %d with the token %v, after slot %d", r.process, r.slot, r.token, last)
		case r.err == nil:
			finished[r.slot]++
			last = r.slot
		}
	}
	for slot, n := range finished {
		if n != 1 && !(n == 0 && unknown[slot]) {
			t.Errorf("slot %d has run successfully %d times", slot, n)
		}
	}
	return len(runs)
}
