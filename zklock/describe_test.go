package zklock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestDescriptionsSettle: goroutines of a client acquire a name in all ways, hand it over, keep it,
// set labels and downgrade, while requests are late and their replies are lost, and another
// client appears and leaves. If the other client waits when a goroutine has had the lock for
// half of the session timeout, it reads a description of this goroutine, with its latest label.
func TestDescriptionsSettle(t *testing.T) {
	for seed := range uint64(long.Count(t, "ZKLOCK_RUNS", 30, 150)) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 29))
			e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
			late := faultdriver.Random(seed, 0.2, faultdriver.Delay(30*time.Millisecond), faultdriver.LoseReply(), faultdriver.Drop(),
				faultdriver.DelayReply(200*time.Millisecond), faultdriver.LateAfter(time.Second))
			faults := faultdriver.On(faultdriver.Get, late)
			if seed%2 == 0 {
				faults = faultdriver.On(faultdriver.Set, late)
			}
			keep := "0s"
			if seed%3 > 0 {
				keep = "1m"
			}
			params := map[string]string{"keep": keep, "handover_time": fmt.Sprint(50+rng.IntN(200), "ms")}
			a := connect(t, faultdriver.Wrap(e.Connector(), faults), params, (&events{}).hooks())
			b := connect(t, e.Connector(), nil)
			acquire := func(label string, reader bool) chan *zklock.Lock {
				from := zklock.Acquirer(a.Mutex("x"))
				if reader {
					from = a.RWMutex("x").Reader()
				}
				opts := []zklock.AcquireOption{labelled(label)}
				if rng.IntN(3) == 0 {
					opts = append(opts, zklock.WithRevocable())
				}
				return acquiring(t, from, withTrace(t.Context(), "trace of "+label), opts...)
			}
			for round := range 12 {
				for range rng.IntN(5) { // perhaps it is kept then
					mustRelease(t, <-acquire("early", rng.IntN(3) == 0))
				}
				var waiter chan error
				ctx, cancel := context.WithCancel(t.Context())
				comes := func() {
					done := make(chan error, 1)
					waiter = done
					go func() {
						l, err := b.Mutex("x").Acquire(ctx, labelled("b"))
						if l != nil {
							time.Sleep(50 * time.Millisecond)
							err = l.Release(context.Background())
						}
						done <- err
					}()
					time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
				}
				if rng.IntN(4) == 0 {
					comes()
				}
				if rng.IntN(3) == 0 { // a goroutine gives up, and may leave its place to the next one
					go func() {
						if l, err := a.Mutex("x").Acquire(t.Context(), labelled("quits"), zklock.WithWait(20*time.Millisecond)); err == nil {
							mustRelease(t, l)
						}
					}()
					time.Sleep(10 * time.Millisecond)
				}
				var queue []chan *zklock.Lock
				for i := range 1 + rng.IntN(4) {
					reader := i%2 == round%2 // not two at a time: readers that share a place share its label
					queue = append(queue, acquire(fmt.Sprint(round, "-", i), reader))
				}
				var l *zklock.Lock
				label, trace := "", ""
				for i, got := range queue {
					if l != nil {
						mustRelease(t, l)
					}
					l = <-got
					label, trace = fmt.Sprint(round, "-", i), fmt.Sprint("trace of ", round, "-", i)
					time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
					if rng.IntN(8) == 0 {
						time.Sleep(2 * time.Second)
					}
				}
				time.Sleep(100 * time.Millisecond)
				if len(waiter) == cap(waiter) { // the other client does not want the lock yet, or has had it
					comes()
				}
				if rng.IntN(3) == 0 && l.Mode() == zklock.Exclusive {
					if err := l.Downgrade(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if rng.IntN(3) == 0 {
					label += ", set"
					relabel(t, l, label)
				}
				time.Sleep(6 * time.Second)
				found, err := b.Contenders(t.Context(), "x")
				if err != nil || len(found) < 2 {
					t.Fatalf("seed %d, round %d: %+v, %v", seed, round, found, err)
				}
				if c := found[0]; c.Label != label || c.Trace != trace || c.Kept {
					t.Errorf("seed %d, round %d: the holder has the label %q, and others read %+v", seed, round, label, c)
				}
				mustRelease(t, l)
				cancel()
				<-waiter
				time.Sleep(time.Second)
			}
		})
	}
}
