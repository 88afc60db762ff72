package zklock_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A goroutine that watches a client's own nodes takes new nodes when old ones have gone.
// So one lock that is kept, while many others come and go, does not keep a goroutine for
// itself alone.
func TestGuardsThatHaveRoomAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		hold := func(n int) (held []*zklock.Lock) {
			for range n {
				name := fmt.Sprint("lock-", len(held))
				held = append(held, mustLock(t)(c.Mutex(name).Acquire(t.Context(), zklock.WithoutHandover())))
			}
			time.Sleep(2 * time.Second) // they are watched now
			return held
		}
		var kept []*zklock.Lock
		goroutines := 0
		const rounds, many = 10, 64
		for i := range rounds {
			kept = append(kept, mustLock(t)(c.Mutex(fmt.Sprint("kept-", i)).Acquire(t.Context())))
			for _, l := range hold(many - 1) {
				mustRelease(t, l)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait() // until the other goroutines, such as the reaper, are idle
			if n := runtime.NumGoroutine(); i == 0 {
				goroutines = n
			} else if n > goroutines+1 {
				t.Fatalf("round %d: %d goroutines, and %d in the first round; only %d more locks are held", i, n, goroutines, i)
			}
		}
		for _, l := range kept {
			mustRelease(t, l)
		}
	})
}
