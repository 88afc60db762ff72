package zkdriver_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
)

// A balancer is the only host of a URL. It looks after no server: when one is silent, it passes connections on to that one as
// well. A session that meets it makes its next attempt soon, since another one gets a question for the status: the first, or
// the second.
func TestBalancerPassesASessionOnToASilentServer(t *testing.T) {
	for what, turns := range map[string][]bool{ // whether the silent server gets a connection
		"it gets no question":         {true, false, true, false},
		"it gets each first question": {true, true, false},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTriad(t, 2*time.Second)
				silent, other := (w.e.Leader()+1)%3, w.e.Leader()
				var left []bool // used by the network only
				addr := w.n.Balance(func() int {
					if len(left) == 0 {
						return other
					}
					to := other
					if left[0] {
						to = silent
					}
					left = left[1:]
					return to
				})
				c := w.n.Connector("", addr)
				s, err := c.Connect(within(t, 5*time.Second), 30*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				defer shut(s)
				<-time.After(time.Minute)
				w.stop(silent)
				left = turns
				w.n.Of(s.ID()).Reset()
				began := time.Now()
				generation(t, s, 2)
				if took := time.Since(began); took > 5*time.Second { // one attempt has as much
					t.Errorf("the session goes on after %v, want less than 5s", took)
				}
				if len(left) > 0 {
					t.Errorf("%d connections were not made", len(left))
				}
			})
		})
	}
}

// A server that is far away, and slower to resume sessions than to answer for its status, has the time for it.
func TestSlowServerResumesASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTriad(t, 2*time.Second)
		c := w.n.Connector("", w.n.Balance(func() int { return 0 }))
		s, err := c.Connect(within(t, 5*time.Second), 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		defer shut(s)
		<-time.After(time.Minute)
		w.n.Distance(0, 300*time.Millisecond, 300*time.Millisecond, 0)
		w.n.Late(0, time.Second)
		w.n.Of(s.ID()).Reset()
		began := time.Now()
		generation(t, s, 2)
		if took := time.Since(began); took > 2500*time.Millisecond { // two round trips, a second, and a pause
			t.Errorf("resumed after %v, want one attempt", took)
		}
	})
}

// Behind a balancer, too, no lock is lost when a server falls silent, the leader or another one, although it gets every third
// connection: with the default settings, and whether there are calls or not.
func TestSilentServerBehindABalancer(t *testing.T) {
	for _, leader := range []bool{false, true} {
		for _, callers := range []int{0, 2} {
			for phase := range long.Count(t, "ZKLOCK_PHASES", 6, 80) {
				synctest.Test(t, func(t *testing.T) {
					w := newTriad(t, 2*time.Second)
					var turn atomic.Int32
					u := w.use(t, phase, callers, w.n.Balance(func() int { return int(turn.Add(1)) % 3 }))
					server := w.e.Leader()
					if !leader {
						server = (server + 1) % 3
					}
					defer w.stop(server)()
					<-time.After(45 * time.Second)
					if lost := u.end(); lost > 0 {
						t.Errorf("the leader: %t, %d callers, phase %d: %d of %d locks lost", leader, callers, phase, lost, len(u.held))
					}
				})
			}
		}
	}
}

// A balancer resets connections on which nothing was sent for a while. The sessions send more often, whether they hold locks
// or not.
func TestBalancerResetsIdleConnections(t *testing.T) {
	for _, idle := range []time.Duration{5 * time.Second, 30 * time.Second, time.Minute} {
		for _, holds := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newTriad(t, 2*time.Second)
				w.n.Idle(idle)
				u := w.use(t, 0, 0, w.n.Balance(func() int { return 1 }))
				for i := 0; i < len(u.held) && !holds; i++ {
					if err := u.held[i].Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				<-time.After(10 * time.Minute)
				if lost := u.end(); holds && lost > 0 || u.moves > 0 {
					t.Errorf("idle for %v, holds locks: %t: %d locks lost, sessions suspended %d times, want neither", idle, holds, lost, u.moves)
				}
			})
		}
	}
}

// A balancer accepts connections and closes them at once, because no server lives behind it. Sessions last longer than an
// election, and go on soon after it.
func TestBalancerWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTriad(t, 2*time.Second)
		var dead atomic.Bool
		u := w.use(t, 0, 0, w.n.Balance(func() int {
			if dead.Load() {
				return -1
			}
			return 1
		}))
		dead.Store(true)
		for _, c := range w.conns() {
			c.Reset()
		}
		<-time.After(13 * time.Second)
		dead.Store(false)
		<-time.After(2 * time.Second)
		if n := len(w.conns()); n != 2 {
			t.Errorf("%d sessions are connected, want 2", n)
		}
		<-time.After(20 * time.Second)
		u.unharmed(t, "a balancer without a server", 0)
	})
}

// full sets the limit of all servers' connections.
func (w triad) full(most int) {
	for i := range 3 {
		w.n.Limit(i, most)
	}
}

// Servers have no room for another connection, not even for a question. The sessions that there are stay where they are, also
// while commits take long.
func TestServersWithoutRoomKeepTheirSessions(t *testing.T) {
	for _, slow := range []time.Duration{0, 1600 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			w := newTriad(t, 2*time.Second)
			u := w.use(t, 0, 2)
			for i := range 3 {
				memcontrol.Of(w.e).Flush(i, slow)
			}
			w.full(0)
			<-time.After(3 * time.Minute)
			u.unharmed(t, fmt.Sprint("no room, and disks that take ", slow), 6*time.Second)
			if u.moves > 0 {
				t.Errorf("disks take %v: sessions were suspended %d times, want none", slow, u.moves)
			}
		})
	}
}

// One server has no room, and a session there loses its connection: it goes on at another one.
func TestSessionGoesOnWhereThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTriad(t, 2*time.Second)
		u := w.use(t, 0, 2)
		for range 5 {
			for _, c := range w.conns() {
				w.full(-1)
				w.n.Limit(c.Server(), 0)
				c.Reset()
				<-time.After(5 * time.Second)
			}
		}
		u.unharmed(t, "no room at one server", 2*time.Second)
	})
}

// No server has room, and one of the two sessions loses its connection. Names without a node use the other one, after as long as a
// try waits; so Healthy is nil. The locks of the session whose connection is lost last as long as their lease, and are kept
// if there is room before. Then it carries names again.
func TestNoServerHasRoomForOneOfTwoSessions(t *testing.T) {
	for _, lasts := range []time.Duration{13 * time.Second, 2 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			w := newTriad(t, 2*time.Second)
			u := w.use(t, 0, 0)
			w.full(0)
			w.conns()[0].Reset()
			<-time.After(2600 * time.Millisecond)
			for caller := range 3 {
				u.all.Go(func() { u.call(caller) })
			}
			<-time.After(lasts)
			w.full(-1)
			<-time.After(time.Minute)
			if n := u.Stats().Open; n != 2 {
				t.Errorf("%d sessions a minute after there was room again, want 2", n)
			}
			lost, want := u.end(), 0
			if lasts > time.Minute {
				want = 3
			}
			if lost != want || len(u.failed) > 0 || len(u.unwell) > 0 {
				t.Errorf("no room for %v: %d locks lost, want %d; %d of %d calls failed; Healthy: %v; %v", lasts, lost, want, len(u.failed), u.calls, u.unwell, u.failed)
			}
			if most := 6 * time.Second; u.longest > most { // a slot without a session for the first time
				t.Errorf("no room for %v: the longest call took %v, want %v at most", lasts, u.longest, most)
			}
		})
	}
}

// Disks need 1.6 s, those of all servers. New clients get locks with three and with five hosts in the URL, and no attempt leaves a
// session behind.
func TestNewClientsOfSlowServers(t *testing.T) {
	for _, servers := range []int{3, 5} {
		synctest.Test(t, func(t *testing.T) {
			w := newServers(t, servers, 2*time.Second)
			for i := range servers {
				memcontrol.Of(w.e).Flush(i, 1600*time.Millisecond)
			}
			const clients = 10
			open := make(chan int, clients)
			for i := range clients {
				go func() {
					<-time.After(time.Duration(i) * 300 * time.Millisecond)
					c, _ := w.open(t, 0, 0, zklock.Hooks{})
					if _, err := c.Mutex(fmt.Sprint("new-", i)).Acquire(t.Context()); err != nil {
						t.Error(err)
					}
					open <- c.Stats().Open
				}()
			}
			sessions := 0
			for range clients {
				sessions += <-open
			}
			if n := len(w.e.Sessions()); n != sessions {
				t.Errorf("%d servers: %d sessions at the ensemble, and the clients have %d", servers, n, sessions)
			}
		})
	}
}
