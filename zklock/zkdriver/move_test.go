package zkdriver_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/fips"
	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// triad is an ensemble of three servers, or of more, in a bubble, whose clients speak ZooKeeper's protocol.
type triad struct {
	e *memdriver.Ensemble
	n *wire.Network
}

// trip is how long packets take to a server.
const trip = 5 * time.Millisecond

// newTriad starts three servers with ZooKeeper's own syncLimit.
func newTriad(t *testing.T, tick time.Duration) triad { return newServers(t, 3, tick) }

// newServers is newTriad for any number of servers.
func newServers(t *testing.T, servers int, tick time.Duration) triad {
	fips.SkipWire(t)
	e := memdriver.New(memdriver.WithServers(servers), memdriver.WithTickTime(tick), memdriver.WithSyncLimit(5), memdriver.WithLatency(time.Millisecond))
	w := triad{e, wire.New(e)}
	for i := range servers {
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
	c, err := zklock.OpenConfig(zklock.Config{Connector: w.n.Connector(""), SessionTimeout: timeout, TickTime: tick, PoolMaxSessions: 1, ConnectTimeout: 15 * time.Second},
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

// syncs repeats a Sync until one is answered, five times at most.
func syncs(s driver.Session) {
	for range 5 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := s.Sync(ctx, "/")
		cancel()
		if err == nil {
			return
		}
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

// The promise of docs/operations.md, in virtual time: whenever a follower falls silent, or the network forgets the
// connection to it and lets new ones through, no lock is lost that a session there has, and no call waits for more than two
// seconds. It holds for each session timeout that zklock allows with the ticks of the servers.
func TestSilentFollowerCostsNoLockAtAnyInstant(t *testing.T) {
	for _, c := range []struct{ timeout, tick time.Duration }{
		{4 * time.Second, time.Second}, {10 * time.Second, 2 * time.Second}, {10 * time.Second, 3 * time.Second},
		{20 * time.Second, 2 * time.Second}, {20 * time.Second, 3 * time.Second}, {30 * time.Second, 2 * time.Second}, {40 * time.Second, 2 * time.Second},
	} {
		t.Run(fmt.Sprintf("%v,tick=%v", c.timeout, c.tick), func(t *testing.T) {
			for phase := range 40 {
				forgotten := phase >= 20
				synctest.Test(t, func(t *testing.T) {
					w := newTriad(t, c.tick)
					var mu sync.Mutex
					var at string
					var session int64
					var left []zklock.SessionEvent
					client, log := w.open(t, c.timeout, c.tick, zklock.Hooks{Session: func(e zklock.SessionEvent) {
						mu.Lock()
						defer mu.Unlock()
						if at, session = e.Server, e.ID; e.State == driver.Suspended {
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
					<-time.After(c.timeout + time.Duration(phase%20)*c.timeout/50)
					mu.Lock()
					server, conn := seat(t, at), w.n.Of(session)
					mu.Unlock()
					if server == w.e.Leader() {
						return // another phase begins elsewhere
					}
					silent := "zklock: left " + wire.Addr(server) + ", silent for "
					if forgotten {
						conn.Silence(wire.Up)
						silent = "zklock: left a connection to " + wire.Addr(server) + ", silent for "
					} else {
						w.stop(server)
					}
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
					if d := client.Stats().Departure; client.Stats().Departures != 1 || d.From != wire.Addr(server) || d.To == d.From || d.Forgotten != forgotten || !strings.Contains(log(), d.String()) {
						t.Errorf("phase %d: the figures have %+v", phase, d)
					}
					if strings.Count(log(), silent) != 1 || !strings.Contains(log(), "no lock was lost") {
						t.Errorf("phase %d: the log is %q, want one line with %q", phase, log(), silent)
					}
				})
			}
		})
	}
}

// A waiter makes no request that would show that its server is silent. Its session does, often enough: when the holder
// leaves, the first in line has the lock three seconds later at most, and one further back five seconds.
func TestWaiterNoticesThatItsServerIsSilent(t *testing.T) {
	for _, rests := range []bool{false, true} {
		for phase := range 8 {
			synctest.Test(t, func(t *testing.T) {
				w := newTriad(t, 2*time.Second)
				server := (w.e.Leader() + 1) % 3
				elsewhere := zklock.Config{Connector: w.n.Connector("", wire.Addr((server+1)%3), wire.Addr((server+2)%3)), PoolMaxSessions: 1}
				holder, err := zklock.OpenConfig(elsewhere)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = holder.Close() })
				l, err := holder.Mutex("m").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				leave := func() { _ = l.Release(context.Background()) }
				if rests { // another one is the first in line, and leaves with the holder
					ctx, cancel := context.WithCancel(t.Context())
					gone := make(chan struct{})
					other, err := zklock.OpenConfig(elsewhere)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = other.Close() })
					go func() {
						defer close(gone)
						_, _ = other.Mutex("m").Acquire(ctx)
					}()
					<-time.After(time.Second)
					leave = func() {
						cancel()
						<-gone
						_ = l.Release(context.Background())
					}
				}
				var client *zklock.Client
				for at := ""; at != wire.Addr(server); { // the first server of a session is random
					seated := make(chan string, 100)
					client, _ = w.open(t, 0, 0, zklock.Hooks{Session: func(e zklock.SessionEvent) { seated <- e.Server }})
					if err := client.Ping(t.Context()); err != nil {
						t.Fatal(err)
					}
					at = <-seated
				}
				granted := make(chan error, 1)
				go func() {
					_, err := client.Mutex("m").Acquire(t.Context())
					granted <- err
				}()
				<-time.After(time.Minute + time.Duration(phase)*700*time.Millisecond)
				w.stop(server)
				leave()
				began := time.Now()
				if err := <-granted; err != nil {
					t.Fatal(err)
				}
				most := 3 * time.Second
				if rests {
					most = 5 * time.Second
				}
				if took := time.Since(began); took > most {
					t.Errorf("rests=%t, phase %d: granted after %v, want %v at most", rests, phase, took, most)
				}
			})
		}
	}
}

// The promise of the defaults: with servers as ZooKeeper configures them, the silence of the leader costs no lock either,
// although nothing is committed until the others have elected another one.
func TestSilentLeaderCostsNoLockAtAnyInstant(t *testing.T) {
	for phase := range 40 {
		synctest.Test(t, func(t *testing.T) {
			w := newTriad(t, 2*time.Second)
			leader := wire.Addr(w.e.Leader())
			var over atomic.Bool
			defer over.Store(true)
			client, _ := w.open(t, 0, 0, zklock.Hooks{Session: func(e zklock.SessionEvent) { // the defaults
				if e.Silent > 0 && e.Server != leader && !over.Load() {
					t.Errorf("phase %d: left %s as silent, and the leader is %s", phase, e.Server, leader)
				}
			}})
			l, err := client.Mutex("held").Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(l.SessionTimeout() + time.Duration(phase)*l.SessionTimeout()/80)
			began := time.Now()
			w.stop(w.e.Leader())
			if err := client.Ping(t.Context()); err != nil { // it waits for the next leader
				t.Errorf("phase %d: after %v: %v", phase, time.Since(began), err)
			}
			if outage := time.Since(began); outage < 8*time.Second { // syncLimit ticks, from what the followers have heard last
				t.Errorf("phase %d: the ensemble answers after %v, so no leader was silent", phase, outage)
			}
			<-time.After(l.SessionTimeout())
			if !l.Valid() {
				t.Errorf("phase %d: %v, want the lock to be held", phase, l.Err())
			}
		})
	}
}

// A call that begins while the servers elect a leader costs no session, and so no place of a waiter that rests: what is left
// of the lease, which no place needed for long, is shorter then than the election.
func TestCallInAnElectionCostsNoSession(t *testing.T) {
	for _, timeout := range []time.Duration{30 * time.Second, 40 * time.Second} {
		for phase := range 20 {
			synctest.Test(t, func(t *testing.T) {
				w := newTriad(t, 2*time.Second)
				var waits sync.WaitGroup
				t.Cleanup(waits.Wait)
				ctx, cancel := context.WithCancel(context.Background())
				t.Cleanup(cancel)
				var client *zklock.Client
				for range 3 { // the first holds, the second is the first in line, and the third rests
					client, _ = w.open(t, timeout, 0, zklock.Hooks{})
					queue := client.Mutex("queue")
					waits.Go(func() { _, _ = queue.Acquire(ctx) })
					<-time.After(time.Second)
				}
				<-time.After(timeout/2 + time.Duration(phase)*timeout/80)
				w.stop(w.e.Leader())
				began := time.Now()
				l, err := client.Mutex("used").Acquire(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if outage := time.Since(began); outage < 8*time.Second { // see TestSilentLeaderCostsNoLockAtAnyInstant
					t.Errorf("phase %d: the call took %v, so no leader was silent", phase, outage)
				}
				if n := client.Stats().SessionsLost; n > 0 || !l.Valid() {
					t.Errorf("session_timeout %v, phase %d: %d sessions lost, want none", timeout, phase, n)
				}
			})
		}
	}
}

// Nor does a caller that leaves meanwhile: what is left of an old lease does not count, whatever its place needs.
func TestCallerThatLeavesInAnElectionCostsNoSession(t *testing.T) {
	sessionOutlastsElection(t, func(w triad, _, leave func()) {
		w.stop(w.e.Leader())
		<-time.After(time.Second)
		leave()
	})
}

// Nor is one lost that needs its lease since a moment before the election: its waiter is the first in line now.
func TestWaiterWhoseTurnIsNearCostsNoSession(t *testing.T) {
	sessionOutlastsElection(t, func(w triad, ahead, _ func()) {
		ahead()
		<-time.After(100 * time.Millisecond)
		w.stop(w.e.Leader())
	})
}

// sessionOutlastsElection has three clients wait for one lock: the first holds it, the second is the first in line, and
// the third rests, for as long as leaves too little of its lease for an election. strike stops the leader. ahead ends the
// second's wait, and leave the third's.
func sessionOutlastsElection(t *testing.T, strike func(w triad, ahead, leave func())) {
	const timeout = 30 * time.Second
	for phase := range 40 {
		synctest.Test(t, func(t *testing.T) {
			w := newTriad(t, 2*time.Second)
			var waits sync.WaitGroup
			t.Cleanup(waits.Wait)
			var client *zklock.Client
			var leave [3]func()
			for i := range leave {
				client, _ = w.open(t, timeout, 0, zklock.Hooks{})
				ctx, cancel := context.WithCancel(context.Background())
				t.Cleanup(cancel)
				leave[i] = cancel
				queue := client.Mutex("queue")
				waits.Go(func() { _, _ = queue.Acquire(ctx) })
				<-time.After(time.Second)
			}
			<-time.After(timeout/3 + time.Duration(phase)*timeout/100)
			strike(w, leave[1], leave[2])
			<-time.After(timeout)
			if n := client.Stats().SessionsLost; n > 0 {
				t.Errorf("phase %d: %d sessions lost, want none", phase, n)
			}
		})
	}
}

// A session tries the server that is silent while the others refuse connections, as they may in an election. It does not
// wait there for the end of the attempt: it asks the others until one answers.
func TestSilentServerIsNotWaitedForAfterAnElection(t *testing.T) {
	for phase := range 10 {
		synctest.Test(t, func(t *testing.T) {
			w := newTriad(t, 2*time.Second)
			silent := (w.e.Leader() + 1) % 3
			others := func(off bool) {
				for i := range 3 {
					w.n.Off(i, off && i != silent)
				}
			}
			c := w.n.Connector("")
			s, err := c.Connect(t.Context(), 30*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(2 * time.Second)
			w.stop(silent)
			others(true)
			w.n.Of(s.ID()).Reset()
			<-time.After(2*time.Second + time.Duration(phase)*170*time.Millisecond)
			others(false)
			began := time.Now()
			generation(t, s, 2)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("phase %d: connected %v after the others serve again, want 2s at most", phase, took)
			}
			shut(s)
			_ = c.Close()
		})
	}
}

// With the defaults, a lock that was granted right before the ensemble stops answering lasts as long as one that is held
// for long, although its session was idle: the silence of a leader costs no such lock either.
func TestFreshLockLastsAsLongAsOthers(t *testing.T) {
	for phase := range 40 {
		synctest.Test(t, func(t *testing.T) {
			w := newTriad(t, 2*time.Second)
			client, _ := w.open(t, 0, 0, zklock.Hooks{})
			if err := client.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Duration(phase) * 700 * time.Millisecond)
			l, err := client.Mutex("fresh").Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			granted := time.Now()
			for i := range 3 {
				defer w.stop(i)()
			}
			<-l.Done()
			if lasted := time.Since(granted); lasted < 18*time.Second {
				t.Errorf("phase %d: the lock has lasted %v, want 18s at least", phase, lasted)
			}
		})
	}
}

// New sessions are opened although each server needs most of a commit's time for its answer, however many there are,
// and no attempt leaves a session behind.
func TestSlowServersLetNewSessionsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTriad(t, 2*time.Second)
		for i := range 3 {
			w.n.Late(i, 4*time.Second)
		}
		c := w.n.Connector("")
		s, err := c.Connect(within(t, 10*time.Second), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(w.e.Sessions()); n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
		shut(s)
		_ = c.Close()
	})
}

// One name has the addresses of all servers, as that of a headless service. Each of them is a server: a new session
// leaves the one that is silent for another one, and so does a session that is there.
func TestEachAddressOfANameIsAServer(t *testing.T) {
	for server := range 3 {
		synctest.Test(t, func(t *testing.T) {
			w := newTriad(t, 2*time.Second)
			w.n.Name("zk.shop", time.Millisecond, server, (server+1)%3, (server+2)%3)
			c := w.n.Connector("", "zk.shop")
			var all []driver.Session
			for range 3 {
				s, err := c.Connect(within(t, 5*time.Second), 20*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, s)
			}
			if w.e.Leader() != server {
				w.stop(server)
				for _, s := range all {
					began := time.Now()
					syncs(s)
					if took := time.Since(began); took > 2*time.Second || s.Server() == wire.Addr(server) {
						t.Errorf("the session is at %s after %v, and %s is silent", s.Server(), took, wire.Addr(server))
					}
				}
				for range 3 {
					began := time.Now()
					s, err := c.Connect(within(t, 5*time.Second), 20*time.Second)
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took > 2*time.Second {
						t.Errorf("a new session took %v", took)
					}
					all = append(all, s)
				}
			}
			for _, s := range all {
				shut(s)
			}
			_ = c.Close()
		})
	}
}

// Without DNS, servers are as before: the addresses of the last lookup that worked stay in use, also for new sessions.
// And a name server may be slower than any attempt.
func TestLookupIsNoServer(t *testing.T) {
	for what, broken := range map[string]func(w triad){
		"fails":        func(w triad) { w.n.Name("zk.shop", time.Millisecond) },
		"says nothing": func(w triad) { w.n.Name("zk.shop", time.Hour) },
		"slow":         func(w triad) { w.n.Name("zk.shop", 6*time.Second, 0, 1, 2) },
	} {
		for _, servers := range [][]int{{1}, {0, 1, 2}} {
			t.Run(fmt.Sprint(what, len(servers)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newTriad(t, 2*time.Second)
					w.n.Name("zk.shop", 6*time.Second, servers...)
					c := w.n.Connector("", "zk.shop")
					s, err := c.Connect(within(t, 15*time.Second), 10*time.Second)
					if err != nil {
						t.Fatal(err)
					}
					broken(w)
					for range 3 {
						w.n.Of(s.ID()).Reset()
						began := time.Now()
						syncs(s)
						if took := time.Since(began); took > 2*time.Second {
							t.Errorf("the session has its next connection after %v", took)
						}
						<-time.After(time.Minute)
					}
					other, err := c.Connect(within(t, 3*time.Second), 10*time.Second)
					if err != nil {
						t.Fatal(err)
					}
					shut(s)
					shut(other)
					_ = c.Close()
				})
			})
		}
	}
}

// The name server says nothing of one host of the URL, and never has. The other hosts do not wait for that.
func TestNameWithoutAnAddressHoldsUpNoOther(t *testing.T) {
	for unnamed := range 3 {
		synctest.Test(t, func(t *testing.T) {
			w := newTriad(t, 2*time.Second)
			var hosts []string
			for i := range 3 {
				hosts = append(hosts, fmt.Sprint("zk-", i))
				w.n.Name(hosts[i], time.Millisecond, i)
			}
			w.n.Name(hosts[unnamed], time.Hour)
			c := w.n.Connector("", hosts...)
			s, err := c.Connect(within(t, 5*time.Second), 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
			if at := slices.IndexFunc(hosts, func(host string) bool { return strings.HasPrefix(s.Server(), host) }); at != w.e.Leader() {
				w.stop(at)
				began := time.Now()
				syncs(s)
				// Two attempts wait a quarter of a second for lookups, and the one without an address for 0.4 s more.
				if took := time.Since(began); took > 2400*time.Millisecond {
					t.Errorf("%s is silent, and the session is at %s after %v, want 2.4s at most", hosts[at], s.Server(), took)
				}
			}
			shut(s)
			_ = c.Close()
		})
	}
}

// Servers are replaced one by one, as Kubernetes does it, and the addresses of a name with them.
func TestAddressesChangeOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTriad(t, 2*time.Second)
		w.n.Name("zk.shop", time.Millisecond, 0, 1)
		c := w.n.Connector("", "zk.shop")
		s, err := c.Connect(within(t, 5*time.Second), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct{ off, back, named []int }{{[]int{0}, nil, []int{1, 2}}, {[]int{1}, []int{0}, []int{2, 0}}, {[]int{2}, []int{1}, []int{0, 1}}} {
			w.n.Name("zk.shop", time.Millisecond, step.named...)
			for _, i := range step.back {
				w.n.Off(i, false)
			}
			for _, i := range step.off {
				w.n.Off(i, true)
				if at := w.n.Of(s.ID()); at != nil && s.Server() == wire.Addr(i) {
					at.Reset()
				}
			}
			<-time.After(time.Second)
			if err := s.Sync(within(t, 2*time.Second), "/"); err != nil {
				t.Errorf("%+v: %v", step, err)
			}
		}
		shut(s)
		_ = c.Close()
	})
}

// The addresses of the other servers have changed since the session made its connection. When its server falls silent, it asks
// the servers that there are now.
func TestSilentServerIsLeftForANewAddress(t *testing.T) {
	for what, hosts := range map[string][]string{"one name": {"zk.shop", "zk.shop"}, "a name each": {"zk-0", "zk-1"}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTriad(t, 2*time.Second)
				a, b, next := (w.e.Leader()+1)%3, (w.e.Leader()+2)%3, w.e.Leader()
				name := func(b int) {
					if hosts[0] == hosts[1] {
						w.n.Name(hosts[0], time.Millisecond, a, b)
						return
					}
					w.n.Name(hosts[0], time.Millisecond, a)
					w.n.Name(hosts[1], time.Millisecond, b)
				}
				name(b)
				w.n.Off(b, true) // so the session is at a
				c := w.n.Connector("", slices.Compact(slices.Clone(hosts))...)
				s, err := c.Connect(within(t, 10*time.Second), 20*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				name(next)
				<-time.After(time.Minute)
				w.stop(a)
				began := time.Now()
				syncs(s)
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("the session is at %s after %v, want another server after 2s at most", s.Server(), took)
				}
				shut(s)
				_ = c.Close()
			})
		})
	}
}

// A server that pauses for a second, is far away, or needs a second for its disk, is not left: with the default settings
// sessions stay where they are, whatever they do.
func TestSlowServersKeepTheirSessions(t *testing.T) {
	for what, c := range map[string]struct {
		distance time.Duration // one way, and as much jitter
		pause    time.Duration
		flush    [3]time.Duration // of a write to the disk
		full     bool             // the session's server takes no more connections
		runs     int              // if more than one
	}{
		"pauses of a second":            {distance: trip, pause: time.Second},
		"far away":                      {distance: 300 * time.Millisecond},
		"far away, with pauses":         {distance: 100 * time.Millisecond, pause: 900 * time.Millisecond},
		"a slow disk":                   {distance: trip, flush: [3]time.Duration{0, time.Second, 0}},
		"slow disks":                    {distance: trip, flush: [3]time.Duration{time.Second, time.Second, time.Second}},
		"very slow disks":               {distance: trip, flush: [3]time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second}},
		"far away, and with slow disks": {distance: 300 * time.Millisecond, flush: [3]time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second}, runs: 4},
		"no room for questions":         {distance: trip, flush: [3]time.Duration{900 * time.Millisecond, 900 * time.Millisecond, 900 * time.Millisecond}, full: true},
	} {
		t.Run(what, func(t *testing.T) {
			for range max(c.runs, 1) {
				synctest.Test(t, func(t *testing.T) {
					w := newTriad(t, 2*time.Second)
					for i := range 3 {
						w.n.Distance(i, c.distance, c.distance, c.distance)
					}
					var moves, server atomic.Int32
					client, log := w.open(t, 0, 0, zklock.Hooks{Session: func(e zklock.SessionEvent) {
						if server.Store(int32(seat(t, e.Server))); e.State == driver.Suspended {
							moves.Add(1)
						}
					}})
					l, err := client.Mutex("held").Acquire(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					for i, takes := range c.flush {
						memcontrol.Of(w.e).Flush(i, takes)
					}
					over := make(chan struct{})
					w.n.Off(int(server.Load()), c.full)
					var calls sync.WaitGroup
					for caller := range 2 {
						calls.Go(func() {
							for i := 0; ; i++ {
								select {
								case <-over:
									return
								case <-time.After(100 * time.Millisecond):
								}
								if x, err := client.Mutex(fmt.Sprint(caller, "-call-", i%10)).Acquire(t.Context()); err == nil {
									_ = x.Release(t.Context())
								} else {
									t.Error(err)
								}
							}
						})
					}
					for i := range 60 {
						<-time.After(3 * time.Second)
						if c.pause > 0 {
							cut := memdriver.AroundClients(i % 3)
							w.n.Stopped(i%3, true)
							w.e.Partition(cut)
							<-time.After(c.pause)
							w.e.Heal(cut)
							w.n.Stopped(i%3, false)
						}
					}
					close(over)
					calls.Wait()
					if n := moves.Load(); n > 0 || !l.Valid() {
						t.Errorf("%d moves, and the lock is valid: %t; the log:\n%s", n, l.Valid(), log())
					}
				})
			}
		})
	}
}

// The questions work over TLS, too.
func TestSilentServerIsLeftOverTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTriad(t, 2*time.Second)
		w.n.Encrypt(t.TempDir())
		c := open(t, w.n.URL())
		s, err := c.Connect(within(t, 10*time.Second), 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(s)
		server := seat(t, s.Server())
		if server == w.e.Leader() {
			return // each order of the servers has its turn sooner or later
		}
		w.stop(server)
		began := time.Now()
		syncs(s)
		if took := time.Since(began); took > 2*time.Second || s.Server() == wire.Addr(server) {
			t.Errorf("the session is at %s after %v, want another server than %s", s.Server(), took, wire.Addr(server))
		}
	})
}

// The clients of a silent server do not arrive at the others in one instant, although all were busy when it fell silent:
// each has asked at its own time, and pauses for a random time before it connects.
func TestMovesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions = 120
		w := newTriad(t, 2*time.Second)
		server := (w.e.Leader() + 1) % 3
		var all sync.WaitGroup
		var mu sync.Mutex
		var moved []time.Duration // after the fault
		var stopped time.Time
		for i := range sessions {
			c := w.n.Connector("")
			s, err := c.Connect(t.Context(), 30*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				defer c.Close()
				defer shut(s)
				<-time.After(time.Duration(i) * 7 * time.Millisecond)
				for range 20 {
					if s.Sync(t.Context(), "/") != nil {
						generation(t, s, 2)
						mu.Lock()
						defer mu.Unlock()
						moved = append(moved, time.Since(stopped))
						return
					}
					<-time.After(time.Second)
				}
			})
		}
		<-time.After(5*time.Second + 300*time.Millisecond)
		mu.Lock()
		stopped = time.Now()
		mu.Unlock()
		w.stop(server)
		all.Wait()
		slices.Sort(moved)
		if len(moved) < sessions/6 {
			t.Fatalf("%d of %d sessions have moved, want a third", len(moved), sessions)
		}
		for i, at := range moved {
			same := 0
			for _, other := range moved[i:] {
				if other < at+50*time.Millisecond {
					same++
				}
			}
			if same > len(moved)/4 {
				t.Errorf("%d of %d sessions moved within 50ms, %v after the fault: %v", same, len(moved), at, moved)
				break
			}
		}
		if last := moved[len(moved)-1]; last > 3*time.Second {
			t.Errorf("the last session moved %v after the fault", last)
		}
	})
}
