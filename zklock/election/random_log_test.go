package election_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// sticks is a log that takes some lines, and is stuck from then on.
type sticks struct {
	slog.Handler // of a stuck log
	left         *atomic.Int64
}

// Handle implements slog.Handler.
func (h sticks) Handle(ctx context.Context, r slog.Record) error {
	if h.left.Add(-1) >= 0 {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// Whatever a program does with locks and elections, and wherever its log gets stuck: each call returns within its own bounds, Close
// and Shutdown too, and nothing stays locked for others. Sessions expire, and nodes are deleted, at random.
func TestRandomWorkWithAStuckLog(t *testing.T) {
	const (
		names = 3
		waits = 5 * time.Second  // of a call
		slack = 10 * time.Second // for requests that a call still sends when its context has ended: connect_timeout
	)
	first := rand.Uint64()
	for i := range uint64(long.Count(t, "ZKLOCK_RUNS", 60, 3000)) {
		seed := first + i
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			e, log := memdriver.New(memdriver.WithLatency(5*time.Millisecond)), corekit.NewStuckLog(t)
			var left atomic.Int64
			left.Store(r.Int64N(6))
			logger := slog.New(sticks{log.Logger().Handler(), &left})
			other := connect(t, e)
			returns := func(what string, limit time.Duration, f func()) {
				if !log.Returns(t, what, limit, f) {
					t.Errorf("seed %d", seed)
				}
			}
			var clients sync.WaitGroup
			for range 2 {
				c, err := zklock.OpenConfig(zklock.Config{Connector: e.Connector(), PoolMaxSessions: 1 + r.IntN(2), Keep: []time.Duration{0, time.Minute}[r.IntN(2)],
					SessionTimeout: corekit.SessionTimeout, ConnectTimeout: corekit.ConnectTimeout}, zklock.WithLogger(logger))
				if err != nil {
					t.Fatal(err)
				}
				var goroutines sync.WaitGroup
				for range 3 {
					own := rand.New(rand.NewPCG(r.Uint64(), 0))
					goroutines.Go(func() { work(t, own, e, c, logger, names, waits, waits+slack, returns) })
				}
				graceful, early := r.IntN(2) == 0, time.Duration(r.Int64N(int64(20*time.Second)))
				clients.Go(func() {
					if early < 10*time.Second { // while the goroutines use it
						<-time.After(early)
					} else {
						goroutines.Wait()
					}
					returns("the end of a client", waits+slack, func() {
						ctx, cancel := context.WithTimeout(context.Background(), time.Second)
						defer cancel()
						if graceful {
							_ = c.Shutdown(ctx)
						}
						_ = c.Close()
					})
					goroutines.Wait()
				})
			}
			clients.Wait()
			for n := range names {
				returns("a lock of another process", waits+slack, func() {
					l, err := other.Mutex(fmt.Sprint(n)).Acquire(t.Context())
					if err == nil {
						err = l.Release(t.Context())
					}
					if err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				})
			}
		})
		if t.Failed() {
			break
		}
	}
}

// work does a few things at random, and checks that each returns.
func work(t *testing.T, r *rand.Rand, e *memdriver.Ensemble, c *zklock.Client, logger *slog.Logger, names int, waits, limit time.Duration, returns func(string, time.Duration, func())) {
	rest := func() time.Duration { return time.Duration(r.Int64N(int64(time.Second))) }
	for range 8 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.Int64N(int64(waits))))
		name, second := fmt.Sprint(r.IntN(names)), fmt.Sprint(r.IntN(names))
		hold, kind := rest(), r.IntN(6)
		switch kind {
		case 0, 1: // a lock, and in half of the cases a second one inside: circles arise
			returns("Do", limit+2*time.Second, func() {
				_ = zklock.Do(ctx, c.Mutex(name), func(ctx context.Context, _ *zklock.Lock) error {
					<-time.After(hold)
					if kind == 0 {
						return nil
					}
					return zklock.Do(ctx, c.Mutex(second), func(context.Context, *zklock.Lock) error { return errors.New("no database") })
				})
			})
		case 2: // a term whose function fails, ends, or is late
			how := r.IntN(3)
			stands := election.New(c, "e"+name, election.WithLogger(logger), election.WithStuck(waits, func(*election.Term) {}))
			returns("Run", limit+2*waits, func() {
				_ = stands.Run(ctx, func(ctx context.Context, _ *election.Term) error {
					switch how {
					case 0:
						return errors.New("no database")
					case 1:
						<-ctx.Done()
						<-time.After(2*waits - time.Second)
					}
					return ctx.Err()
				})
			})
		case 3:
			if sessions := e.Sessions(); len(sessions) > 0 {
				e.Expire(sessions[r.IntN(len(sessions))])
			}
		case 4:
			e.Break("/zklock/" + name)
		case 5: // a lock that is not released before its context, and may be lost
			returns("Release", limit+time.Second, func() {
				l, err := c.Mutex(name).Acquire(ctx)
				if err != nil {
					return
				}
				<-time.After(hold)
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				_ = l.Release(ended)
			})
		}
		cancel()
		<-time.After(rest())
	}
}
