// Package crowd has a client lose its session with very many locks on it and very many
// waiters behind it, on any ensemble.
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

// Crowd is how many there are of each.
type Crowd struct {
	Held   int // locks of the client that loses its session
	Queued int // its waiters with a queue node, for names that another client holds
	Local  int // its waiters for names that it holds itself
	Rivals int // waiters of a third client, for names that it holds; at most Held
}

// Clients are those that take part. Each has one session.
type Clients struct {
	// Loser is the client that loses its session.
	Loser *zklock.Client

	// Other holds the names that Loser waits for in ZooKeeper's queue.
	Other *zklock.Client

	// Rival waits for names that Loser holds.
	Rival *zklock.Client
}

// Lose sets the crowd up and calls loss, which has to end the loser's session by
// whatever means. It fails the test if a rival is granted a name while the context of
// the lock that was lost, or its Err, does not say so. It returns how long after the
// end of the lease the last context ended, when all waiters and rivals have left.
func (n Crowd) Lose(t testing.TB, c Clients, loss func()) time.Duration {
	t.Helper()
	// Everything ends before Lose does, on contexts of its own.
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
	for c.Loser.Stats().Waiting < n.Queued+n.Local || c.Rival.Stats().Waiting < n.Rivals {
		pause := time.NewTimer(20 * time.Millisecond)
		<-pause.C
	}
	loss()
	rivals.Wait()
	var last time.Duration
	for _, h := range held {
		<-h.handled
		var lost *zklock.LostError
		if !errors.As(h.lock.Err(), &lost) {
			t.Errorf("%s ended with %v, not with a loss", h.lock.Name(), h.lock.Err())
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

// work is a lock and what is done under it: waiting for its context to end.
type work struct {
	lock    *zklock.Lock
	ctx     context.Context
	ended   time.Time     // when the context had ended; set before handled is closed
	handled chan struct{} // closed when the lock was released
}

// hold takes the loser's locks and works under them.
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
				t.Errorf("release of a lost lock: %v", err)
			}
		}()
	}
	return held
}

// wait has the loser wait in ZooKeeper's queue, in several ways, and locally.
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

// rival has the third client wait for names that the loser holds.
func (n Crowd) rival(t testing.TB, background context.Context, c *zklock.Client, held []*work) *sync.WaitGroup {
	var rivals sync.WaitGroup
	var reported atomic.Bool
	for i := range n.Rivals {
		rivals.Go(func() {
			l, err := c.Mutex(own(i)).Acquire(background)
			if err != nil {
				t.Errorf("a rival: %v", err)
				return
			}
			if h := held[i]; (h.lock.Err() == nil || h.ctx.Err() == nil) && !reported.Swap(true) {
				t.Errorf("%s was granted to another client, and the lost lock has error %v, its context %v", l.Name(), h.lock.Err(), h.ctx.Err())
			}
			_ = l.Release(context.Background())
		})
	}
	return &rivals
}

// acquire takes the first n names, many at a time.
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
