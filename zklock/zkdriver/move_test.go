package zkdriver_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// triad is an ensemble of three servers in a bubble, whose clients speak ZooKeeper's protocol.
type triad struct {
	e *memdriver.Ensemble
	n *wire.Network
}

// trip is how long packets take to a server.
const trip = 5 * time.Millisecond

// newTriad starts three servers with ZooKeeper's own syncLimit.
func newTriad(t *testing.T, tick time.Duration) triad {
	e := memdriver.New(memdriver.WithServers(3), memdriver.WithTickTime(tick), memdriver.WithSyncLimit(5), memdriver.WithLatency(time.Millisecond))
	w := triad{e, wire.New(e)}
	for i := range 3 {
		w.n.Distance(i, trip, trip, trip)
	}
	t.Cleanup(func() {
		w.n.Close()
		_ = e.Close()
	})
	return w
}

// open opens a client, whose log is returned by its second result.
func (w triad) open(t *testing.T, timeout, tick time.Duration, hooks zklock.Hooks) (*zklock.Client, func() string) {
	var mu sync.Mutex
	var lines strings.Builder
	log := slog.New(slog.NewTextHandler(locked{&mu, &lines}, nil))
	c, err := zklock.OpenConfig(zklock.Config{Connector: w.n.Connector(""), SessionTimeout: timeout, TickTime: tick, PoolMaxSessions: 1},
		zklock.WithLogger(log), zklock.WithHooks(hooks))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, func() string {
		mu.Lock()
		defer mu.Unlock()
		return lines.String()
	}
}

// locked is a writer for several goroutines.
type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// stop stops the process of a server: its machine accepts connections.
func (w triad) stop(server int) (resume func()) {
	cuts := []memdriver.Cut{memdriver.AroundServer(server), memdriver.AroundClients(server)}
	w.n.Stopped(server, true)
	w.e.Partition(cuts...)
	return func() {
		w.e.Heal(cuts...)
		w.n.Stopped(server, false)
	}
}

// seat returns the server of a client's only session.
func seat(t *testing.T, address string) int {
	for i := range 3 {
		if wire.Addr(i) == address {
			return i
		}
	}
	t.Fatalf("no server at %s", address)
	return 0
}

// The promise of docs/operations.md, in virtual time: whenever a follower falls silent, no lock is lost that a session
// there has, and no call waits for more than two seconds. It holds for each session timeout that zklock allows with the
// ticks of the servers.
func TestSilentFollowerCostsNoLockAtAnyInstant(t *testing.T) {
	for _, c := range []struct{ timeout, tick time.Duration }{
		{4 * time.Second, time.Second}, {10 * time.Second, 2 * time.Second}, {10 * time.Second, 3 * time.Second},
		{20 * time.Second, 2 * time.Second}, {20 * time.Second, 3 * time.Second}, {30 * time.Second, 2 * time.Second}, {40 * time.Second, 2 * time.Second},
	} {
		t.Run(fmt.Sprintf("%v,tick=%v", c.timeout, c.tick), func(t *testing.T) {
			for phase := range 20 {
				synctest.Test(t, func(t *testing.T) {
					w := newTriad(t, c.tick)
					var mu sync.Mutex
					var at string
					var left []zklock.SessionEvent
					client, log := w.open(t, c.timeout, c.tick, zklock.Hooks{Session: func(e zklock.SessionEvent) {
						mu.Lock()
						defer mu.Unlock()
						if at = e.Server; e.State == driver.Suspended {
							left = append(left, e)
						}
					}})
					var held []*zklock.Lock
					for i := range 5 {
						l, err := client.Mutex(fmt.Sprint("held-", i)).Acquire(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						held = append(held, l)
					}
					<-time.After(c.timeout + time.Duration(phase)*c.timeout/50)
					mu.Lock()
					server := seat(t, at)
					mu.Unlock()
					if server == w.e.Leader() {
						return // another phase begins elsewhere
					}
					w.stop(server)
					if phase%2 == 0 { // without calls, the session notices by itself
						<-time.After(c.timeout)
					}
					for i := 0; i < 3; i++ {
						began := time.Now()
						l, err := client.Mutex(fmt.Sprint("call-", i)).Acquire(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						if took := time.Since(began); took > 2*time.Second {
							t.Errorf("phase %d: call %d took %v, want 2s at most", phase, i, took)
						}
						if err := l.Release(context.Background()); err != nil {
							t.Error(err)
						}
					}
					<-time.After(c.timeout)
					for _, l := range held {
						if !l.Valid() {
							t.Errorf("phase %d: %v, want the lock to be held", phase, l.Err())
						}
					}
					mu.Lock()
					defer mu.Unlock()
					if len(left) != 1 || left[0].Silent == 0 || left[0].Server != wire.Addr(server) {
						t.Errorf("phase %d: the session was suspended %+v, want once, as %s was silent", phase, left, wire.Addr(server))
					}
					if want := "zklock: left " + wire.Addr(server) + ", silent for "; strings.Count(log(), want) != 1 || !strings.Contains(log(), "no lock was lost") {
						t.Errorf("phase %d: the log is %q, want one line with %q", phase, log(), want)
					}
				})
			}
		})
	}
}
