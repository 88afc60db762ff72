package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestSemaphoreGivesPermitsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var cs []*zklock.Client
		for range 6 {
			cs = append(cs, connect(t, e.Connector(), nil))
		}
		a := mustLock(t)(cs[0].Semaphore("s", 2).Acquire(t.Context()))
		b := mustLock(t)(cs[1].Semaphore("s", 2).Acquire(t.Context()))
		var waiting []chan *zklock.Lock
		for _, c := range cs[2:] {
			waiting = append(waiting, acquiring(t, c.Semaphore("s", 2), t.Context()))
		}
		if _, err := cs[0].Semaphore("s", 2).TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("TryAcquire without a free permit: %v, want ErrNotAcquired", err)
		}
		if a.Mode() != zklock.Permit || b.Token().Compare(a.Token()) <= 0 {
			t.Errorf("mode %v, tokens %v and %v; want a permit, and the second token later", a.Mode(), a.Token(), b.Token())
		}
		if err := a.Downgrade(t.Context()); !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("Downgrade of a permit: %v, want ErrConflict", err)
		}
		held := []*zklock.Lock{b, a} // the newest one is released first, then the oldest, and so on
		last := b.Token()
		for i, w := range waiting {
			none(t, "a waiter, without a free permit,", w)
			mustRelease(t, held[0])
			l := <-w
			if l.Token().Compare(last) <= 0 {
				t.Errorf("grant %d: token %v after %v", i, l.Token(), last)
			}
			last = l.Token()
			held = []*zklock.Lock{held[1], l}
		}
		for _, l := range held {
			mustRelease(t, l)
		}
		synctest.Wait()
		if nodes(e) != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}

func TestKindsOfOneNameConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		kinds := []func(c *zklock.Client) zklock.Acquirer{
			func(c *zklock.Client) zklock.Acquirer { return c.Mutex("s") },
			func(c *zklock.Client) zklock.Acquirer { return c.Semaphore("s", 1) },
			func(c *zklock.Client) zklock.Acquirer { return c.Semaphore("s", 2) },
		}
		for i := range kinds {
			l := mustLock(t)(kinds[i](c).Acquire(t.Context()))
			for j := range kinds {
				if i == j || i > 0 && j > 0 {
					continue // semaphores with different numbers wait for each other
				}
				for _, by := range []*zklock.Client{c, d} {
					what := fmt.Sprint("kind ", j, " while kind ", i, " is held")
					if _, err := kinds[j](by).Acquire(t.Context(), zklock.WithWait(time.Second)); !errors.Is(err, zklock.ErrConflict) {
						t.Errorf("%s: %v, want ErrConflict", what, err)
					}
					if _, err := kinds[j](by).TryAcquire(t.Context()); !errors.Is(err, zklock.ErrConflict) {
						t.Errorf("%s: %v, want ErrConflict", what, err)
					}
				}
			}
			mustRelease(t, l)
			synctest.Wait()
			if nodes(e) != 0 {
				t.Errorf("left behind:\n%s", e.Dump())
			}
		}
		for _, n := range []int{0, -1, 10_001} {
			if _, err := c.Semaphore("s", n).Acquire(t.Context()); !errors.Is(err, zklock.ErrConflict) {
				t.Errorf("a semaphore of %d permits: %v, want ErrConflict", n, err)
			}
		}
	})
}

// The first waiter in line gets a permit and marks its node, before the waiter behind it
// has armed its watch on that node. The waiter behind is the first in line now, and has
// to watch all holders: here another holder leaves first.
func TestPermitMarkedBeforeItsNeighbourArms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var held []*zklock.Lock
		for range 2 {
			held = append(held, mustLock(t)(connect(t, e.Connector(), nil).Semaphore("s", 2).Acquire(t.Context())))
		}
		first := acquiring(t, connect(t, e.Connector(), nil).Semaphore("s", 2), t.Context())
		var once sync.Once
		granted := make(chan *zklock.Lock, 1)
		hooks := zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			if ev.Kind == "watch" { // the waiter behind has listed the queue, and is about to arm its watch
				once.Do(func() {
					mustRelease(t, held[0])
					granted <- <-first
					time.Sleep(time.Second) // until the mark is written
				})
			}
			return ctx, nil
		}}
		second := make(chan *zklock.Lock, 1)
		c := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
		go func() {
			l, err := c.Semaphore("s", 2).Acquire(t.Context(), zklock.WithWait(time.Hour))
			if err != nil {
				t.Errorf("the second in line: %v", err)
			}
			second <- l
		}()
		g := <-granted
		time.Sleep(10 * time.Second)
		none(t, "a third holder of two permits", second)
		mustRelease(t, held[1])
		if l := <-second; l != nil {
			mustRelease(t, l)
		}
		if !g.Valid() {
			t.Error("the first waiter in line has lost its permit meanwhile")
		}
		mustRelease(t, g)
	})
}

// Whichever holder leaves, one waiter is woken. Its grant wakes the next one, which is
// the first in line then. So two waiters list the queue, however many wait.
func TestPermitReleaseWakesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for leaver := range 3 {
			e := memdriver.New()
			var held []*zklock.Lock
			for range 3 {
				held = append(held, mustLock(t)(connect(t, e.Connector(), nil).Semaphore("s", 3).Acquire(t.Context())))
			}
			got := make(chan *zklock.Lock, 20)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range cap(got) {
				c := connect(t, e.Connector(), nil)
				wg.Go(func() {
					if l, err := c.Semaphore("s", 3).Acquire(ctx); err == nil {
						got <- l
					}
				})
				synctest.Wait()
			}
			d := cost(e, func() { mustRelease(t, held[leaver]); held[leaver] = <-got })
			// One event is that of the holder that leaves, for the first in line. The other is that of the mark with
			// which it shows the next that it holds.
			if d.Events != 2 || d.Children != 2 || d.Gets != 0 || d.Sets != 1 || len(got) != 0 {
				t.Errorf("holder %d left: %+v, want two lists, one mark and 2 events; %d more permits were granted, want none", leaver, d, len(got))
			}
			cancel()
			wg.Wait()
			for _, l := range held {
				mustRelease(t, l)
			}
		}
	})
}

// Waiters leave from anywhere in the queue, and holders in any order. There are never
// too many holders, and no waiter waits while a permit is free, except for the few round
// trips that it takes to get the permit.
func TestPermitsWhicheverHolderLeaves(t *testing.T) {
	// trips is the time for 20 round trips. A waiter that missed a wake-up would wait for the
	// next release, 50 ms later or more.
	const contenders, trips = 10, 40 * time.Millisecond
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			e := memdriver.New(memdriver.WithLatency(time.Millisecond))
			in := &corekit.Section{Room: 3}
			var waiting atomic.Int32
			var wg sync.WaitGroup
			for range contenders {
				c := connect(t, e.Connector(), nil)
				rng := rand.New(rand.NewPCG(seed, rng.Uint64()))
				wg.Go(func() {
					for range 10 {
						wait := time.Hour
						if rng.IntN(3) == 0 {
							wait = time.Duration(rng.IntN(300)) * time.Millisecond
						}
						waiting.Add(1)
						l, err := c.Semaphore("s", in.Room).Acquire(t.Context(), zklock.WithWait(wait))
						waiting.Add(-1)
						if err != nil {
							if wait == time.Hour {
								in.Fault("acquire: %v", err)
							}
							continue
						}
						in.Enter()
						time.Sleep(time.Duration(50+rng.IntN(150)) * time.Millisecond)
						in.Leave()
						mustRelease(t, l)
					}
				})
			}
			done := make(chan struct{})
			go func() { wg.Wait(); close(done) }()
			free := time.Now() // since when a permit has been free while a contender waits
			for running := true; running; {
				look := time.NewTimer(time.Millisecond)
				select {
				case <-look.C:
				case <-done:
					running = false
				}
				if !in.HasRoom() || waiting.Load() == 0 {
					free = time.Now()
				} else if time.Since(free) == trips {
					in.Fault("a permit was free for %v while %d contenders waited", trips, waiting.Load())
				}
			}
			for _, f := range in.Faults {
				t.Errorf("seed %d: %s", seed, f)
			}
		})
	}
}

// A waiter for the only permit of a semaphore sleeps. It does not ask over and over whether
// the holder was granted the permit.
func TestOnlyPermitIsWaitedForInPeace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		hooks := zklock.Hooks{Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			if (e.Kind == "list" || e.Kind == "watch") && reads.Add(1) == 1000 {
				panic("1000 reads: a waiter asks over and over")
			}
			return ctx, nil
		}}
		c := connect(t, memdriver.New().Connector(), nil, zklock.WithHooks(hooks))
		only := c.Semaphore("s", 1)
		first := mustLock(t)(only.Acquire(t.Context()))
		second := acquiring(t, only, t.Context())
		time.Sleep(time.Second)
		third := acquiring(t, only, t.Context())
		time.Sleep(time.Second)
		mustRelease(t, first)
		l := <-second // marked, since it waited
		time.Sleep(2 * time.Second)
		none(t, "the third", third)
		mustRelease(t, l)
		mustRelease(t, <-third)
	})
}

// A mutex's node comes while a permit is held, and is listed only when the next permit has replaced that one. Its
// caller does not get the lock, although its node is at the front by then.
func TestMutexAtTheFrontFindsThePermitBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		d := connect(t, faultdriver.Wrap(e.Connector(), faultdriver.On(faultdriver.Children, faultdriver.Delay(time.Second))), nil)
		s := c.Semaphore("s", 2)
		first, second := mustLock(t)(s.Acquire(t.Context())), mustLock(t)(s.Acquire(t.Context()))
		held, err := c.Contenders(t.Context(), "s")
		if err != nil || len(held) != 2 || held[1].Zxid != second.Token().Zxid {
			t.Fatalf("%v, %v; want both permits", held, err)
		}
		next := acquiring(t, s, t.Context())
		failed := make(chan error, 1)
		go func() {
			l, err := d.Mutex("s").Acquire(t.Context())
			if err == nil {
				t.Errorf("the mutex is held at %v", l.Token())
				mustRelease(t, l)
			}
			failed <- err
		}()
		synctest.Wait()
		if err := memcontrol.Of(e).Delete("/zklock/s/" + held[1].Node); err != nil { // so that there are no more nodes than permits
			t.Fatal(err)
		}
		mustRelease(t, first)
		l := <-next
		if err := <-failed; !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("mutex: %v, want ErrConflict", err)
		}
		mustRelease(t, l)
	})
}

// A job that needs several permits takes them one after another, under a mutex. Jobs of all sizes end, the largest with those that came
// when it did.
func TestSeveralPermitsUnderAMutex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const permits, jobs = 4, 40
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		room := &corekit.Section{Room: permits}
		var wg sync.WaitGroup
		longest := time.Duration(0)
		var mu sync.Mutex
		for i := range jobs {
			c, needs := connect(t, e.Connector(), nil), 1+i%permits
			wg.Go(func() {
				began := time.Now()
				var held []*zklock.Lock
				release := func() {}
				if needs > 1 {
					first := mustLock(t)(c.Mutex("several").Acquire(t.Context(), zklock.WithWait(time.Hour)))
					release = func() { mustRelease(t, first) }
				}
				for range needs {
					held = append(held, mustLock(t)(c.Semaphore("s", permits).Acquire(t.Context(), zklock.WithWait(time.Hour))))
				}
				release()
				mu.Lock()
				longest = max(longest, time.Since(began))
				mu.Unlock()
				for range held {
					room.Enter()
				}
				time.Sleep(10 * time.Millisecond)
				for _, l := range held {
					room.Leave()
					mustRelease(t, l)
				}
			})
		}
		wg.Wait()
		for _, f := range room.Faults {
			t.Error(f)
		}
		if longest > jobs*30*time.Millisecond {
			t.Errorf("a job has waited for %v", longest)
		}
	})
}
