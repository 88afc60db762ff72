package zklock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// One that asks for two permits lists the queue only when a holder ahead of it has been replaced by one of three permits behind it, which
// the count of children has granted. It waits for that one, too.
func TestWaiterForFewerPermitsFindsTheHolderBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		d := connect(t, faultdriver.Wrap(e.Connector(), faultdriver.On(faultdriver.Children, faultdriver.Delay(time.Second))), nil)
		var held []*zklock.Lock
		for range 3 {
			held = append(held, mustLock(t)(c.Semaphore("s", 3).Acquire(t.Context())))
		}
		next := acquiring(t, c.Semaphore("s", 3), t.Context())
		fewer := acquiring(t, d.Semaphore("s", 2), t.Context())
		synctest.Wait()
		nodes, err := c.Contenders(t.Context(), "s")
		if err != nil || len(nodes) != 4 || nodes[2].Zxid != held[2].Token().Zxid {
			t.Fatalf("%v, %v; want three permits and a waiter", nodes, err)
		}
		if err := memcontrol.Of(e).Delete("/zklock/s/" + nodes[2].Node); err != nil { // so that there are no more nodes than permits
			t.Fatal(err)
		}
		lists := memcontrol.Of(e).Ops().Children
		mustRelease(t, held[0])
		l := <-next
		if n := memcontrol.Of(e).Ops().Children - lists; n != 0 {
			t.Fatalf("%d lists, so the permit was not granted by the count", n)
		}
		time.Sleep(5 * time.Second)
		none(t, "one that asks for two permits, while two others hold,", fewer)
		mustRelease(t, l)
		mustRelease(t, <-fewer)
		mustRelease(t, held[1])
	})
}

// A permit was granted behind one that asks for fewer. The one that replaces it is granted by a look, although there are no more nodes than
// permits by then, and in its turn.
func TestPermitAfterASmallerNumberLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		fewer := mustLock(t)(d.Semaphore("s", 2).Acquire(t.Context()))
		first := mustLock(t)(c.Semaphore("s", 3).Acquire(t.Context()))
		var waiting []chan *zklock.Lock // the last one at the gate
		for range 3 {
			waiting = append(waiting, acquiring(t, c.Semaphore("s", 3), t.Context()))
			synctest.Wait()
		}
		nodes, err := d.Contenders(t.Context(), "s")
		if err != nil || len(nodes) != 4 {
			t.Fatalf("%v, %v; want two holders and two waiters", nodes, err)
		}
		if err := memcontrol.Of(e).Delete("/zklock/s/" + nodes[3].Node); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, first)
		l := <-waiting[0]
		for range 2 {
			time.Sleep(5 * time.Second)
			none(t, "a third holder, while one that asks for two permits holds,", waiting[1])
			none(t, "a third holder, while one that asks for two permits holds,", waiting[2])
		}
		mustRelease(t, fewer) // then three may hold
		mustRelease(t, <-waiting[1])
		mustRelease(t, <-waiting[2])
		mustRelease(t, l)
	})
}

// numbers are the holders of a semaphore whose number changes, and what each has asked for.
type numbers struct {
	mu     sync.Mutex
	held   []int
	most   int
	grants map[int]int
}

// enter returns an error if more hold than any holder has asked for.
func (h *numbers) enter(number int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = append(h.held, number)
	h.most = max(h.most, len(h.held))
	h.grants[number]++
	if least := slices.Min(h.held); len(h.held) > least {
		return fmt.Errorf("%d hold at the same time, and asked for %v", len(h.held), h.held)
	}
	return nil
}

func (h *numbers) leave(number int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(h.held, number)
	h.held = slices.Delete(h.held, i, i+1)
}

// Clients ask for different numbers of permits: each time for another one, or each client for one number, so that its permits replace each
// other. No more hold than any holder has asked for, none waits in
// vain, and all permits are used.
func TestPermitsWhoseNumberChanges(t *testing.T) {
	const most, clients, goroutines, rounds = 4, 4, 3, 12
	reached, ofClient := 0, []int{2, 3, most, most}
	const seeds = 20 // of four, in one of forty times none has all permits in use at once
	for seed := uint64(0); seed < uint64(corekit.Crowd(seeds)) || reached < most && seed < seeds; seed++ {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			e := memdriver.New(memdriver.WithLatency(time.Millisecond))
			in := &numbers{grants: map[int]int{}}
			var wg sync.WaitGroup
			for k := range clients {
				c := connect(t, e.Connector(), nil)
				for range goroutines {
					rng := rand.New(rand.NewPCG(seed, rng.Uint64()))
					wg.Go(func() {
						for range rounds {
							number := 1 + rng.IntN(most)
							if seed%2 == 1 {
								number = ofClient[k]
							}
							ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
							if rng.IntN(4) == 0 {
								ctx, cancel = context.WithTimeout(t.Context(), time.Duration(rng.IntN(300))*time.Millisecond)
							}
							l, err := c.Semaphore("s", number).Acquire(ctx)
							short := ctx.Err() != nil
							cancel()
							if err != nil {
								if !short {
									t.Errorf("seed %d: %v", seed, err)
								}
								continue
							}
							if err := in.enter(number); err != nil {
								t.Errorf("seed %d: %v", seed, err)
							}
							time.Sleep(time.Duration(5+rng.IntN(50)) * time.Millisecond)
							in.leave(number)
							mustRelease(t, l)
						}
					})
				}
			}
			began := time.Now()
			wg.Wait()
			// Each holds for 55 ms at most, and a turn takes a few round trips: a waiter that missed a wake-up waits for an hour.
			if took := time.Since(began); took > clients*goroutines*rounds*100*time.Millisecond {
				t.Errorf("seed %d: it took %v", seed, took)
			}
			if reached = max(reached, in.most); len(in.grants) != most-int(seed%2) {
				t.Errorf("seed %d: grants %v, want some for each number", seed, in.grants)
			}
			time.Sleep(10 * time.Millisecond) // the deletion for a caller that has left may be under way
			synctest.Wait()
			if nodes(e) != 0 {
				t.Errorf("left behind:\n%s", e.Dump())
			}
		})
	}
	if reached != most {
		t.Errorf("at most %d held at the same time, want %d", reached, most)
	}
}

// One that had the place of another permit comes again behind one that asks for fewer. The limit max_contenders does not
// refuse it, although the queue is full: it was there before.
func TestPermitThatComesAgainIsNotANewcomer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		c, d := connect(t, e.Connector(), map[string]string{"max_contenders": "4"}), connect(t, e.Connector(), nil)
		var held []*zklock.Lock
		for range 3 {
			held = append(held, mustLock(t)(c.Semaphore("s", 3).Acquire(t.Context())))
		}
		next := acquiring(t, c.Semaphore("s", 3), t.Context())
		synctest.Wait()
		var fewer []chan *zklock.Lock
		for range 3 {
			fewer = append(fewer, acquiring(t, d.Semaphore("s", 2), t.Context()))
		}
		time.Sleep(5 * time.Second)
		mustRelease(t, held[0])
		time.Sleep(5 * time.Second)
		mustRelease(t, held[1])
		mustRelease(t, held[2])
		for _, got := range fewer {
			mustRelease(t, soon(t, "one that asks for two", got))
		}
		mustRelease(t, soon(t, "one that comes again", next))
	})
}

// One that asks for one permit waits behind many holders. It lists the queue a few times while these leave in their order, not each time.
func TestWaiterForFewerPermitsWakesSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const holders = 100
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		var held []*zklock.Lock
		for range holders {
			held = append(held, mustLock(t)(c.Semaphore("s", holders+1).Acquire(t.Context())))
		}
		one := acquiring(t, d.Semaphore("s", 1), t.Context())
		synctest.Wait()
		before := memcontrol.Of(e).Ops().Children
		for _, l := range held {
			mustRelease(t, l)
			synctest.Wait()
		}
		mustRelease(t, soon(t, "one that asks for one permit", one))
		if n := memcontrol.Of(e).Ops().Children - before; n > 3 {
			t.Errorf("%d lists while %d holders left, want 3 at most", n, holders)
		}
	})
}
