package zklock_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestCrowdOfWhichFewAreNested: a thousand goroutines of five clients wait for one name, and two of each client
// have a lock. The holder of the name waits for two of these ten locks: for one of them before the crowd waits, and
// for the other after it. One wait of each circle ends, and none of the others does. The test counts the requests.
func TestCrowdOfWhichFewAreNested(t *testing.T) {
	const clients, each, nestedEach = 5, 200, 2
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		params := map[string]string{"session_timeout": "1h", "max_waiters": "0"} // no heartbeat falls into the time that counts
		holder := connect(t, e.Connector(), params)
		top := mustLock(t)(holder.Mutex("top").Acquire(t.Context()))
		var held []*zklock.Lock
		var of []*zklock.Client
		for i := range clients * nestedEach {
			if i%nestedEach == 0 {
				of = append(of, connect(t, e.Connector(), params))
			}
			held = append(held, mustLock(t)(of[i/nestedEach].Mutex(fmt.Sprint("own", i)).Acquire(t.Context())))
		}
		before := nested(t, top, holder.Mutex("own3"))
		time.Sleep(300 * time.Millisecond)
		var waits []<-chan outcome
		var crowd sync.WaitGroup
		for _, c := range of {
			for j := range each {
				if j%(each/nestedEach) == each/nestedEach/2 { // others stand before and behind it
					synctest.Wait()
					waits = append(waits, nested(t, held[len(waits)], c.Mutex("top")))
					continue
				}
				crowd.Go(func() {
					l, err := c.Mutex("top").Acquire(t.Context(), zklock.WithWait(time.Hour))
					if err != nil {
						t.Error(err)
						return
					}
					mustRelease(t, l)
				})
			}
		}
		synctest.Wait()
		time.Sleep(300 * time.Millisecond)
		after := nested(t, top, holder.Mutex("own8"))

		// Those of the locks are among the writes and the watches. A circle costs 6 reads, of 2 registrations
		// and 4 nodes, and a transaction about these. Each client has one look, and the holder two. Each session sends a Sync for its lease.
		looks := cost(e, func() { time.Sleep(1200 * time.Millisecond) })
		if looks.Children > clients+2 || looks.Syncs > clients+1 || looks.Gets > 2*6 || looks.Creates > 1 || looks.MultiOps > len(held)+2+2*6 {
			t.Errorf("the looks cost %+v", looks)
		}
		wantDeadlock(t, <-waits[3], "own3>top", "top>own3")
		wantDeadlock(t, <-after, "top>own8", "own8>top")
		// While the others wait, a client looks again each 5 to 15 s, and no wait is registered again.
		later := cost(e, func() { time.Sleep(20 * time.Second) })
		if least, most := clients+1, 4*(clients+1); later.Children < least || later.Children > most || later.Gets > 0 || later.Deletes > 0 {
			t.Errorf("20 s cost %+v, want %d to %d lists", later, least, most)
		}
		if n := registered(e); n != len(held) {
			t.Errorf("%d waits are registered, want those of nine in the crowd and of the holder", n)
		}
		mustRelease(t, held[3])
		granted(t, <-before)
		mustRelease(t, top)
		waits[3] = nil
		wantVictims(t, settle(t, e, held, waits), 0)
		crowd.Wait()
		for _, c := range append(of, holder) {
			if s := c.Stats(); s.DeadlocksUnknown > 0 || s.Waiting > 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}
