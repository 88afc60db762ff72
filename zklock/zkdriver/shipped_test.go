package zkdriver_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// user is a client with the default settings, two sessions among them, that holds six locks. Its callers, if there are any,
// take and release others.
type user struct {
	triad
	*zklock.Client
	held []*zklock.Lock
	stop chan struct{}
	all  sync.WaitGroup // the callers

	mu      sync.Mutex
	moves   int           // guarded by mu; how often a session was suspended
	calls   int           // guarded by mu
	longest time.Duration // guarded by mu; of a call
	failed  []error       // guarded by mu
	unwell  []error       // guarded by mu; what Healthy said
}

// use starts a client, at the hosts or at all servers. It waits until the heartbeats have their interval, and a little
// longer in each phase.
func (w triad) use(t *testing.T, phase, callers int, hosts ...string) *user {
	t.Helper()
	u := &user{triad: w, stop: make(chan struct{})}
	var err error
	u.Client, err = zklock.OpenConfig(zklock.Config{Connector: w.n.Connector("", hosts...)}, zklock.WithLogger(slog.New(slog.DiscardHandler)),
		zklock.WithHooks(zklock.Hooks{Session: func(e zklock.SessionEvent) {
			u.mu.Lock()
			defer u.mu.Unlock()
			if e.State == driver.Suspended {
				u.moves++
			}
		}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	for i := range 6 {
		l, err := u.Mutex(fmt.Sprint("held-", i)).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		u.held = append(u.held, l)
	}
	<-time.After(35*time.Second + time.Duration(phase)*370*time.Millisecond)
	for caller := range callers {
		u.all.Go(func() { u.call(caller) })
	}
	return u
}

func (u *user) call(caller int) {
	for i := 0; ; i++ {
		select {
		case <-u.stop:
			return
		case <-time.After(200 * time.Millisecond):
		}
		began := time.Now()
		l, err := u.Mutex(fmt.Sprint("call-", caller, "-", i%5)).Acquire(context.Background())
		u.mu.Lock()
		u.calls++
		u.longest = max(u.longest, time.Since(began))
		if err != nil {
			u.failed = append(u.failed, err)
		}
		if err := u.Healthy(); err != nil {
			u.unwell = append(u.unwell, err)
		}
		u.mu.Unlock()
		if err == nil {
			_ = l.Release(context.Background())
		}
	}
}

// end ends the callers, and returns how many locks are lost.
func (u *user) end() (lost int) {
	close(u.stop)
	u.all.Wait()
	for _, l := range u.held {
		if !l.Valid() {
			lost++
		}
	}
	return lost
}

// conns returns the newest connection of each session.
func (w triad) conns() (all []*wire.Conn) {
	for _, s := range w.e.Sessions() {
		if c := w.n.Of(s); c != nil {
			all = append(all, c)
		}
	}
	return all
}

// unharmed says what a fault must not cost: no lock, no call, and at most so much time of one.
func (u *user) unharmed(t *testing.T, what string, most time.Duration) {
	t.Helper()
	lost := u.end()
	if lost > 0 || len(u.failed) > 0 || u.longest > most {
		t.Errorf("%s: %d of %d locks lost, %d of %d calls failed, the longest took %v, want %v at most; %v", what, lost, len(u.held), len(u.failed), u.calls, u.longest, most, u.failed)
	}
}

// A firewall that forgets connections does so again and again, for packets to the servers, for those from them, or for both.
// With the default settings that costs no lock, and calls take little longer.
func TestFirewallForgetsConnectionsAgainAndAgain(t *testing.T) {
	for _, directions := range [][]wire.Direction{{wire.Up}, {wire.Down}, {wire.Up, wire.Down}} {
		for _, every := range []time.Duration{time.Minute, 10 * time.Minute} {
			for _, callers := range []int{0, 2} {
				if callers > 0 && every > time.Minute {
					continue // it shows no more than the others, and takes long
				}
				synctest.Test(t, func(t *testing.T) {
					u := newTriad(t, 2*time.Second).use(t, 0, callers)
					const rounds = 3
					for range rounds {
						for _, c := range u.conns() {
							c.Forget(directions...)
						}
						<-time.After(every)
					}
					u.unharmed(t, fmt.Sprintf("%v, every %v", directions, every), 2500*time.Millisecond)
					if want := 2 * rounds; u.moves != want {
						t.Errorf("%v, every %v: sessions were suspended %d times, want %d", directions, every, u.moves, want)
					}
				})
			}
		}
	}
}

// Whatever a name server answers, a server that falls silent or a connection that is lost costs no lock, and no call waits: an
// empty answer and the denial of the name do not count, addresses may be wrong or of both versions of the protocol, and a name
// may have one address at a time.
func TestAnswersOfNameServers(t *testing.T) {
	v4 := func(server int) string { return fmt.Sprintf("10.0.0.%d", server+1) }
	answers := map[string]func(turn int) []string{
		"empty":            func(int) []string { return nil },
		"denied":           nil,
		"wrong and right":  func(int) []string { return []string{"10.9.9.9", "10.9.9.8", v4(0), v4(1), v4(2)} },
		"of both versions": func(int) []string { return []string{wire.Addr6(0), v4(0), wire.Addr6(1), v4(1), wire.Addr6(2), v4(2)} },
		"version 6 has no route": func(int) []string {
			return []string{"fd00::99", v4(0), "fd00::98", v4(1), "fd00::97", v4(2)}
		},
		"one after the other": func(turn int) []string { return []string{v4(turn % 3)} },
	}
	for _, what := range slices.Sorted(maps.Keys(answers)) {
		for _, stops := range []bool{false, true} {
			for phase := range long.Count(t, "ZKLOCK_PHASES", 2, 8) {
				synctest.Test(t, func(t *testing.T) {
					w := newTriad(t, 2*time.Second)
					w.n.Name("zk.shop", time.Millisecond, 0, 1, 2)
					u := w.use(t, phase, 2, "zk.shop")
					name := func(turn int) {
						if answers[what] == nil {
							w.n.Unname("zk.shop")
						} else {
							w.n.Resolve("zk.shop", time.Millisecond, answers[what](turn)...)
						}
					}
					name(0)
					<-time.After(time.Second)
					if stops {
						defer w.stop((w.e.Leader() + 1) % 3)()
					} else {
						for _, c := range w.conns() {
							c.Reset()
						}
					}
					for turn := range 20 {
						<-time.After(time.Second)
						name(turn)
					}
					u.unharmed(t, fmt.Sprintf("%s, a server stops: %t", what, stops), 2*time.Second)
				})
			}
		}
	}
}

// A name has a wrong address for a while, and connections are lost meanwhile. When the answer is right again, the sessions go on.
func TestNameHasAWrongAddressForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTriad(t, 2*time.Second)
		w.n.Name("zk.shop", time.Millisecond, 0, 1, 2)
		u := w.use(t, 0, 0, "zk.shop")
		w.n.Resolve("zk.shop", time.Millisecond, "10.9.9.9")
		<-time.After(time.Second)
		for _, c := range w.conns() {
			c.Reset()
		}
		<-time.After(9 * time.Second)
		w.n.Name("zk.shop", time.Millisecond, 0, 1, 2)
		<-time.After(30 * time.Second)
		u.unharmed(t, "a wrong address", 0)
	})
}

// Three servers are replaced within a minute, and the addresses of the only name a little later. The last one's successor has
// no address yet.
func TestServersAreReplacedWithinAMinute(t *testing.T) {
	for _, callers := range []int{0, 3} {
		for phase := range long.Count(t, "ZKLOCK_PHASES", 2, 8) {
			synctest.Test(t, func(t *testing.T) {
				w := newServers(t, 5, 2*time.Second)
				w.n.Name("zk.shop", time.Millisecond, 0, 1, 2)
				u := w.use(t, phase, callers, "zk.shop")
				for off, now := range [][]int{{1, 2, 3}, {2, 3, 4}, {3, 4}} {
					w.n.Off(off, true)
					for _, c := range w.conns() {
						if c.Server() == off {
							c.Reset()
						}
					}
					<-time.After(3 * time.Second)
					w.n.Name("zk.shop", time.Millisecond, now...)
					<-time.After(16 * time.Second)
				}
				u.unharmed(t, "servers are replaced", 2*time.Second)
			})
		}
	}
}

// A name server gives one address at a time. When the server of a session falls silent, the address that the name has now is
// another server.
func TestNameHasOneAddressAtATime(t *testing.T) {
	for phase := range 4 {
		synctest.Test(t, func(t *testing.T) {
			w := newTriad(t, 2*time.Second)
			server := (w.e.Leader() + 1) % 3
			w.n.Name("zk.shop", time.Millisecond, server)
			u := w.use(t, phase, 3, "zk.shop")
			w.n.Name("zk.shop", time.Millisecond, (server+1)%3)
			defer w.stop(server)()
			<-time.After(40 * time.Second)
			u.unharmed(t, "one address at a time", 2500*time.Millisecond)
		})
	}
}
