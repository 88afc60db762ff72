package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// inside counts the goroutines in a critical section, and collects what went wrong.
type inside struct {
	room int // how many there may be

	mu     sync.Mutex
	now    int      // guarded by mu
	faults []string // guarded by mu
}

func (i *inside) enter() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.now++; i.now > i.room {
		i.faults = append(i.faults, fmt.Sprintf("%d goroutines are in the critical section, want at most %d", i.now, i.room))
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

// work acquires, holds for a while, and releases, as many times as given.
func (i *inside) work(a zklock.Acquirer, times int, stay time.Duration) {
	ctx := context.Background()
	for range times {
		// A waiter that is never woken fails after an hour. Otherwise the bubble's clock
		// would run on for ever.
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

// acquire returns a lock, or nil if that failed, which makes the run fail.
func (i *inside) acquire(a zklock.Acquirer, opts ...zklock.AcquireOption) *zklock.Lock {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	l, err := a.Acquire(ctx, opts...)
	if err != nil {
		i.fault("acquire: %v", err)
		return nil
	}
	return l
}

func (i *inside) release(l *zklock.Lock) {
	if err := l.Release(context.Background()); err != nil && !errors.Is(err, zklock.ErrReleasePending) {
		i.fault("release: %v", err)
	}
}

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
	run  func(in *inside, a, b *zklock.Client)
}{
	{"mutex", 1, func(in *inside, a, b *zklock.Client) {
		together(
			func() { in.work(b.Mutex("x"), 2, 20*time.Millisecond) },
			func() { in.work(a.Mutex("x"), 2, 20*time.Millisecond) },
		)
	}},
	{"requeue", 1, func(in *inside, a, b *zklock.Client) {
		// Each lock is held for longer than handover_time: with each release the next
		// waiter gets a new place at the tail.
		work := func() { in.work(a.Mutex("x"), 1, 150*time.Millisecond) }
		together(work, work, work, func() { in.work(b.Mutex("x"), 2, 150*time.Millisecond) })
	}},
	{"semaphore", 2, func(in *inside, a, b *zklock.Client) {
		theirs := func() { in.work(b.Semaphore("x", 2), 2, 20*time.Millisecond) }
		ours := func() { in.work(a.Semaphore("x", 2), 2, 30*time.Millisecond) }
		together(theirs, ours, theirs, ours)
	}},
	{"all", 1, func(in *inside, a, b *zklock.Client) {
		// Each pair of these excludes each other, on one name or on both.
		together(
			func() { in.work(zklock.All(a.Mutex("x"), a.Mutex("y")), 2, 20*time.Millisecond) },
			func() { in.work(zklock.All(b.Mutex("y"), b.RWMutex("x").Reader()), 1, 20*time.Millisecond) },
			func() { in.work(zklock.All(b.Mutex("x"), b.Mutex("y")), 1, 20*time.Millisecond) },
		)
	}},
	{"readers", 2, func(in *inside, a, b *zklock.Client) {
		writer := func(c *zklock.Client) {
			if l := in.acquire(c.Mutex("x")); l != nil {
				in.enter()
				in.enter() // twice, which leaves no room for a reader
				pause := time.NewTimer(20 * time.Millisecond)
				<-pause.C
				in.leave()
				in.leave()
				in.release(l)
			}
		}
		together(
			func() { in.work(a.RWMutex("x").Reader(), 2, 150*time.Millisecond) },
			func() { in.work(b.RWMutex("x").Reader(), 1, 30*time.Millisecond) },
			func() { writer(b) },
			func() { writer(a) },
		)
	}},
	{"downgrade", 1, func(in *inside, a, b *zklock.Client) {
		together(
			func() {
				l := in.acquire(a.Mutex("x"))
				if l == nil {
					return
				}
				in.enter()
				if err := l.Downgrade(context.Background()); err != nil {
					in.fault("downgrade: %v", err)
				}
				in.leave()
				in.release(l)
			},
			func() { in.work(b.Mutex("x"), 2, 20*time.Millisecond) },
			func() {
				if l := in.acquire(b.RWMutex("x").Reader()); l != nil {
					in.release(l)
				}
			},
		)
	}},
	{"cancel", 1, func(in *inside, a, b *zklock.Client) {
		// Waits end in every way there is. None leaves a node that the waiters behind it
		// would wait for.
		give := func(err error, l *zklock.Lock) {
			switch {
			case err == nil:
				in.enter()
				in.leave()
				in.release(l)
			case !errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable):
				in.fault("a wait that was given up: %v", err)
			}
		}
		together(
			func() { in.work(b.Mutex("x"), 3, 40*time.Millisecond) },
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
			func() { in.work(a.Mutex("x"), 1, 20*time.Millisecond) },
		)
	}},
}
