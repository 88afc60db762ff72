// Package crowd tests, on any ensemble, what happens when a client loses its session while
// it holds very many locks and has very many waiters.
package crowd

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Crowd has the numbers of locks and waiters.
type Crowd struct {
	Held   int // locks that the loser holds, the client that loses its session
	Queued int // waiters of the loser with a queue node, for names that another client holds
	Local  int // waiters of the loser for names that it holds itself
	Rivals int // waiters of a third client, for names that the loser holds; at most Held
}

// Clients are the clients that take part. Each has one session.
type Clients struct {
	// Loser is the client that loses its session.
	Loser *zklock.Client

	// Other holds the names that Loser waits for in ZooKeeper's queue.
	Other *zklock.Client

	// Rival waits for names that Loser holds.
	Rival *zklock.Client
}

// Lose acquires the locks, starts the waiters, and calls loss, which must end the loser's
// session by any means. It fails the test if a rival is granted a name while the lost lock's
// Err is still nil or its context has not ended. When all waiters and rivals have returned,
// Lose returns the time from the end of the lease until the last context ended.
//
// In real time, a busy machine can lose a session by itself before all waiters wait. If it is the
// loser's, that is the loss: loss is not called, and Lose judges it as any other.
func (n Crowd) Lose(t testing.TB, c Clients, loss func()) time.Duration {
	t.Helper()
	// All goroutines end before Lose returns. They do not depend on the test's context.
	background, end := context.WithCancel(context.Background())
	defer end()
	held := n.hold(t, background, c.Loser)
	theirs := acquire(t, c.Other, n.Queued, foreign)
	if t.Failed() {
		t.FailNow()
	}
	waiting, stop := context.WithCancel(background)
	waiters := n.wait(t, waiting, c.Loser)
	rivals := n.rival(t, background, c.Rival, held)
	// A waiter that fails has failed the test, and would be waited for in vain; and so would those that
	// get their names because the session that held them was lost.
	lost := func() bool { return c.Loser.Stats().SessionsLost > 0 }
	for !t.Failed() && !lost() && c.Other.Stats().SessionsLost == 0 && (c.Loser.Stats().Waiting < n.Queued+n.Local || c.Rival.Stats().Waiting < n.Rivals) {
		pause := time.NewTimer(20 * time.Millisecond)
		<-pause.C
	}
	if lost() {
		t.Logf("this machine was so slow that the session was lost before all waiters waited: %d of %d, and %d of %d rivals",
			c.Loser.Stats().Waiting, n.Queued+n.Local, c.Rival.Stats().Waiting, n.Rivals)
	} else {
		loss()
	}
	rivals.Wait()
	var last time.Duration
	for _, h := range held {
		<-h.handled
		var lost *zklock.LostError
		if !errors.As(h.lock.Err(), &lost) {
			t.Errorf("%s ended with %v, want a LostError", h.lock.Name(), h.lock.Err())
			continue
		}
		last = max(last, h.ended.Sub(lost.At))
	}
	stop()
	waiters.Wait()
	for _, l := range theirs {
		_ = l.Release(background)
	}
	return last
}

func own(i int) string     { return "own/" + strconv.Itoa(i) }
func foreign(i int) string { return "foreign/" + strconv.Itoa(i) }

// work is a lock and the work under it, which only waits until the lock's context ends.
type work struct {
	lock    *zklock.Lock
	ctx     context.Context
	ended   time.Time     // when the context had ended; set before handled is closed
	handled chan struct{} // closed after the lock was released
}

// hold acquires the loser's locks and starts the work under them.
func (n Crowd) hold(t testing.TB, background context.Context, c *zklock.Client) []*work {
	t.Helper()
	locks := acquire(t, c, n.Held, own)
	if t.Failed() {
		t.FailNow()
	}
	held := make([]*work, len(locks))
	for i, l := range locks {
		ctx, cancel := l.Context(background)
		h := &work{lock: l, ctx: ctx, handled: make(chan struct{})}
		held[i] = h
		go func() {
			defer close(h.handled)
			<-ctx.Done()
			h.ended = time.Now()
			cancel()
			if err := l.Release(context.Background()); !errors.Is(err, zklock.ErrLost) {
				t.Errorf("release of a lost lock: %v, want ErrLost", err)
			}
		}()
	}
	return held
}

// wait starts the loser's waiters: in ZooKeeper's queue, for locks of several kinds, and
// for names that the loser holds itself.
func (n Crowd) wait(t testing.TB, ctx context.Context, c *zklock.Client) *sync.WaitGroup {
	var waiters sync.WaitGroup
	add := func(a zklock.Acquirer) {
		waiters.Go(func() {
			l, err := a.Acquire(ctx)
			switch {
			case err == nil:
				_ = l.Release(context.Background())
			case ctx.Err() == nil && !errors.Is(err, zklock.ErrClosed):
				t.Errorf("waiting for %s: %v", a.Name(), err)
			}
		})
	}
	for i := range n.Queued {
		switch i % 3 {
		case 0:
			add(c.Mutex(foreign(i)))
		case 1:
			add(c.RWMutex(foreign(i)).Reader())
		default:
			add(zklock.All(c.Mutex(foreign(i)), c.Mutex("free/"+strconv.Itoa(i))))
		}
	}
	for i := range n.Local {
		add(c.Mutex(own(i % n.Held)))
	}
	return &waiters
}

// rival starts the third client's waiters for names that the loser holds.
func (n Crowd) rival(t testing.TB, background context.Context, c *zklock.Client, held []*work) *sync.WaitGroup {
	var rivals sync.WaitGroup
	var reported atomic.Bool
	for i := range n.Rivals {
		rivals.Go(func() {
			l, err := c.Mutex(own(i)).Acquire(background)
			if err != nil {
				t.Errorf("acquire by a rival: %v", err)
				return
			}
			if h := held[i]; (h.lock.Err() == nil || h.ctx.Err() == nil) && !reported.Swap(true) {
				t.Errorf("%s was granted to another client while the lost lock's Err was %v and its context's Err %v, want both to be set", l.Name(), h.lock.Err(), h.ctx.Err())
			}
			_ = l.Release(context.Background())
		})
	}
	return &rivals
}

// acquire acquires n mutexes, with the names name(0) to name(n-1), many at a time.
func acquire(t testing.TB, c *zklock.Client, n int, name func(int) string) []*zklock.Lock {
	all := make([]*zklock.Lock, n)
	var wg sync.WaitGroup
	turns := make(chan int)
	for range min(n, 256) {
		wg.Go(func() {
			for i := range turns {
				l, err := c.Mutex(name(i)).Acquire(context.Background())
				if err != nil {
					t.Errorf("%s: %v", name(i), err)
					continue
				}
				all[i] = l
			}
		})
	}
	for i := range n {
		turns <- i
	}
	close(turns)
	wg.Wait()
	return all
}
