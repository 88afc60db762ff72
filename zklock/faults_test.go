package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// inside counts who is in a critical section, and remembers what went wrong.
type inside struct {
	room int

	mu     sync.Mutex
	now    int      // guarded by mu
	faults []string // guarded by mu
}

func (i *inside) enter() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.now++; i.now > i.room {
		i.faults = append(i.faults, fmt.Sprintf("%d inside, there is room for %d", i.now, i.room))
	}
}

func (i *inside) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now--
}

func (i *inside) fault(format string, args ...any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults = append(i.faults, fmt.Sprintf(format, args...))
}

// work acquires, stays for a while, and releases, again and again.
func (i *inside) work(a zklock.Acquirer, times int, stay time.Duration) {
	ctx := context.Background()
	for range times {
		// Who is never woken fails, or the bubble's clock would run on for ever.
		bounded, cancel := context.WithTimeout(ctx, time.Hour)
		l, err := a.Acquire(bounded)
		cancel()
		if err != nil {
			i.fault("acquire: %v", err)
			return
		}
		i.enter()
		work := time.NewTimer(stay)
		select {
		case <-work.C:
		case <-l.Done():
			i.fault("lost: %v", l.Err())
		}
		i.leave()
		if err := l.Release(ctx); err != nil && !errors.Is(err, zklock.ErrReleasePending) {
			i.fault("release: %v", err)
		}
	}
}

// about lets an injector see what is about lock znodes and what is below them.
func about(inj faultdriver.Injector) faultdriver.Injector {
	return faultdriver.If("about a lock", func(op faultdriver.Op) bool {
		for _, p := range op.Paths {
			if strings.HasPrefix(p, "/zklock/") {
				return true
			}
		}
		return false
	}, inj)
}

// scenarios are small cases of contention between two clients, of which the
// first meets the faults.
var scenarios = []struct {
	name string
	room int
	run  func(in *inside, a, b *zklock.Client)
}{
	{"mutex", 1, func(in *inside, a, b *zklock.Client) {
		var wg sync.WaitGroup
		wg.Go(func() { in.work(b.Mutex("x"), 2, 20*time.Millisecond) })
		wg.Go(func() { in.work(a.Mutex("x"), 2, 20*time.Millisecond) })
		wg.Wait()
	}},
	{"requeue", 1, func(in *inside, a, b *zklock.Client) {
		// A stay is longer than handover_time: each release queues anew.
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { in.work(a.Mutex("x"), 1, 150*time.Millisecond) })
		}
		wg.Go(func() { in.work(b.Mutex("x"), 2, 150*time.Millisecond) })
		wg.Wait()
	}},
	{"semaphore", 2, func(in *inside, a, b *zklock.Client) {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { in.work(b.Semaphore("x", 2), 2, 20*time.Millisecond) })
			wg.Go(func() { in.work(a.Semaphore("x", 2), 2, 30*time.Millisecond) })
		}
		wg.Wait()
	}},
	{"downgrade", 1, func(in *inside, a, b *zklock.Client) {
		ctx := context.Background()
		var wg sync.WaitGroup
		wg.Go(func() {
			l, err := a.Mutex("x").Acquire(ctx)
			if err != nil {
				in.fault("acquire: %v", err)
				return
			}
			in.enter()
			if err := l.Downgrade(ctx); err != nil {
				in.fault("downgrade: %v", err)
			}
			in.leave()
			if err := l.Release(ctx); err != nil && !errors.Is(err, zklock.ErrReleasePending) {
				in.fault("release: %v", err)
			}
		})
		wg.Go(func() { in.work(b.Mutex("x"), 2, 20*time.Millisecond) })
		wg.Go(func() {
			l, err := b.RWMutex("x").Reader().Acquire(ctx)
			if err != nil {
				in.fault("acquire: %v", err)
				return
			}
			if err := l.Release(ctx); err != nil && !errors.Is(err, zklock.ErrReleasePending) {
				in.fault("release: %v", err)
			}
		})
		wg.Wait()
	}},
}

// Whatever request is lost, before or after it was applied, or is applied when
// nobody expects it any more: exclusion holds, nothing stays behind, and both
// clients can go on.
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

// Two requests of one client may be lost as well.
func TestEveryTwoRequestsMayBeLost(t *testing.T) {
	kinds := []faultdriver.Fault{faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.LateAfter(8 * time.Millisecond)}
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			for n := 1; ; n++ {
				struck := false
				for _, first := range kinds {
					for _, second := range kinds {
						for gap := range 2 {
							synctest.Test(t, func(t *testing.T) {
								counter := faultdriver.NewCounter(faultdriver.Nth(n, about(first)))
								lose(t, sc.room, sc.run, faultdriver.Any(counter, faultdriver.Nth(n+gap, about(second))))
								struck = struck || counter.Struck() > 0
							})
							if t.Failed() {
								return
							}
						}
					}
				}
				if !struck {
					break
				}
			}
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
		in.fault("it took %v", d)
	}
	quiet := time.NewTimer(25 * time.Second) // late requests, sweeps
	<-quiet.C
	if dump := e.Dump(); strings.Contains(dump, "_c_") {
		in.fault("left behind:\n%s", dump)
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
