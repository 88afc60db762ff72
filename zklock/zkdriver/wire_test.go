package zkdriver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/fips"
	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// bubble runs a test in virtual time, on an ensemble of three servers.
func bubble(t *testing.T, run func(t *testing.T, e *memdriver.Ensemble, n *wire.Network)) {
	t.Helper()
	fips.SkipWire(t)
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3))
		n := wire.New(e)
		t.Cleanup(func() {
			n.Close()
			_ = e.Close()
		})
		run(t, e, n)
	})
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// A server is of no use in a way of its own. Every session finds another server: at once; when another
// server has answered a question for its status, and this one has not; or when its attempt is over.
func TestConnectPassesByAServerThatHangs(t *testing.T) {
	for name, c := range map[string]struct {
		hang func(e *memdriver.Ensemble, n *wire.Network, server int)
		most time.Duration
	}{
		"refuses": {func(_ *memdriver.Ensemble, n *wire.Network, server int) { n.Off(server, true) }, 0},
		"accepts and says nothing": {func(e *memdriver.Ensemble, n *wire.Network, server int) {
			n.Stopped(server, true)
			e.Partition(memdriver.AroundClients(server))
		}, 250 * time.Millisecond},
		"machine gone": {func(_ *memdriver.Ensemble, n *wire.Network, server int) { n.Gone(server, true) }, 250 * time.Millisecond},
		"no handshake": {func(_ *memdriver.Ensemble, n *wire.Network, server int) { n.Stop(server, wire.Hello, true) }, 5 * time.Second},
		"no answer":    {func(_ *memdriver.Ensemble, n *wire.Network, server int) { n.Late(server, time.Hour) }, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, e *memdriver.Ensemble, n *wire.Network) {
				c.hang(e, n, 1)
				connector := open(t, n.URL())
				for range 6 { // the order is random, and each session begins with the next server
					began := time.Now()
					s, err := connector.Connect(t.Context(), 10*time.Second)
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took > c.most || s.Server() == wire.Addr(1) {
						t.Errorf("a session of %s after %v", s.Server(), took)
					}
					if err := s.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// Servers whose quorum is slow answer their status at once, and handshakes late. A session that another
// server opens in place of the first would be one too many.
func TestSlowServerIsNotLeft(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble, n *wire.Network) {
		for server := range 3 {
			n.Late(server, 3*time.Second)
		}
		s, err := open(t, n.URL()).Connect(t.Context(), 40*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(s)
		if ids := e.Sessions(); len(ids) != 1 {
			t.Errorf("%d sessions were opened, want 1", len(ids))
		}
	})
}

func TestConnectFailsWithinItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble, n *wire.Network) {
		n.Gone(0, true)
		n.Stop(1, wire.Hello, true)
		n.Off(2, true)
		began := time.Now()
		_, err := open(t, n.URL()).Connect(within(t, 8*time.Second), 4*time.Second)
		if took := time.Since(began); took != 8*time.Second {
			t.Errorf("Connect took %v, want the 8s of its context", took)
		}
		matches(t, err, context.DeadlineExceeded, driver.ErrNotSent)
		for _, s := range []string{wire.Addr(0), wire.Addr(1), wire.Addr(2), "connection refused"} {
			if err != nil && !strings.Contains(err.Error(), s) {
				t.Errorf("error %q does not say %q", err, s)
			}
		}
	})
}

// The client alone would wait for ever for a server that answers pings but no requests.
func TestStuckServerIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble, n *wire.Network) {
		s, err := open(t, n.URL()).Connect(t.Context(), 12*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(s)
		n.Of(s.ID()).Strike(wire.NoReply)
		began := time.Now()
		err = s.Sync(context.Background(), "/")
		matches(t, err, driver.ErrConnLoss, os.ErrDeadlineExceeded)
		if took := time.Since(began); took > 9*time.Second {
			t.Errorf("took %v of a session timeout of 12s", took)
		}
		generation(t, s, 2)
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Error(err)
		}
	})
}

// An idle connection is not stuck: for an hour it carries only pings, one in each third of the timeout.
func TestIdleServerIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble, n *wire.Network) {
		s, err := open(t, n.URL()).Connect(t.Context(), 12*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(s)
		pass(time.Hour)
		if g, _ := s.Conn(); g != 1 {
			t.Errorf("after an hour an idle session uses connection %d, want 1", g)
		}
	})
}

// Distance costs what the protocol needs: a new session one round trip for the connection and one for
// the handshake, a request one, a reconnect two and a short pause. An event needs one way.
func TestDistances(t *testing.T) {
	const ms = time.Millisecond
	for _, way := range [][2]time.Duration{{0, 0}, {5 * ms, 5 * ms}, {25 * ms, 25 * ms}, {100 * ms, 100 * ms}, {250 * ms, 250 * ms}, {250 * ms, 5 * ms}, {0, 250 * ms}} {
		t.Run(fmt.Sprint(way), func(t *testing.T) {
			bubble(t, func(t *testing.T, e *memdriver.Ensemble, n *wire.Network) {
				for server := range 3 {
					n.Distance(server, way[0], way[1], 0)
				}
				trip := way[0] + way[1]
				began := time.Now()
				takes := func(what string, least, most time.Duration) {
					t.Helper()
					if took := time.Since(began); took < least || took > most {
						t.Errorf("%s took %v, want %v to %v", what, took, least, most)
					}
					began = time.Now()
				}
				s, err := open(t, n.URL()).Connect(t.Context(), 10*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				defer shut(s)
				takes("the session", 2*trip, 2*trip)
				if _, err := s.Create(t.Context(), "/a", nil, driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
					t.Fatal(err)
				}
				takes("a create", trip, trip)
				_, events, err := s.Watch(t.Context(), "/a")
				if err != nil {
					t.Fatal(err)
				}
				takes("a watch", trip, trip)
				other, err := e.Connector().Connect(t.Context(), 10*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				defer shut(other)
				if err := other.Delete(t.Context(), "/a", driver.AnyVersion); err != nil {
					t.Fatal(err)
				}
				<-events
				takes("an event", way[1], way[1])
				e.KillConnection(s.ID())
				generation(t, s, 2)
				takes("a reconnect", 2*trip, 2*trip+250*ms)
			})
		})
	}
}

// A name server that fails, or that takes long, is asked again. When it works, the session is there soon.
func TestNamesThatFail(t *testing.T) {
	for name, takes := range map[string]time.Duration{"at once": 0, "slowly": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, e *memdriver.Ensemble, n *wire.Network) {
				n.Name("zk.shop", takes)
				time.AfterFunc(20*time.Second, func() { n.Name("zk.shop", 0, 0, 1, 2) })
				began := time.Now()
				s, err := open(t, n.URL("zk.shop")).Connect(t.Context(), 10*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				defer shut(s)
				if took := time.Since(began); took < 20*time.Second || took > 25*time.Second {
					t.Errorf("the session is there after %v, want 20s to 25s", took)
				}
			})
		})
	}
}

// A server that stops in the TLS handshake is passed by, in the time of an attempt.
func TestTLSHandshakeThatStops(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble, n *wire.Network) {
		n.Encrypt(t.TempDir())
		n.Stop(0, wire.TLSHello, true)
		c := open(t, n.URL())
		for range 3 {
			began := time.Now()
			s, err := c.Connect(t.Context(), 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 2*time.Second || s.Server() == wire.Addr(0) {
				t.Errorf("a session of %s after %v", s.Server(), took)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// Servers that stop in the SASL exchange are left, each in the time of an attempt, as long as the caller
// waits. The sessions that they have opened expire.
func TestSASLExchangeThatStops(t *testing.T) {
	needsMD5(t)
	bubble(t, func(t *testing.T, e *memdriver.Ensemble, n *wire.Network) {
		u := n.URL()
		u.User, u.Password = "alice", driver.NewSecret("open sesame")
		u.Params.Set("sasl", "digest-md5")
		_, err := open(t, u).Connect(within(t, 12*time.Second), 4*time.Second)
		matches(t, err, context.DeadlineExceeded, driver.ErrNotSent)
		if errors.Is(err, zkdriver.ErrNotZooKeeper) || errors.Is(err, driver.ErrAuthFailed) {
			t.Errorf("%v blames the servers for more than silence", err)
		}
		if n := len(e.Sessions()); n < 1 || n > 3 {
			t.Errorf("%d sessions in 12s, want those of the last attempts, as others have expired", n)
		}
		pass(8 * time.Second)
		if n := len(e.Sessions()); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}

// A user with the right password authenticates on each connection, in the round trips of the exchange, and another one is refused. A server
// that stops before its proof is passed by.
func TestSASLExchangeOverTheWire(t *testing.T) {
	needsMD5(t)
	const user, password = "alice", "open sesame"
	url := func(n *wire.Network, password string) driver.URL {
		u := n.URL()
		u.User, u.Password = user, driver.NewSecret(password)
		u.Params.Set("sasl", "digest-md5")
		return u
	}
	bubble(t, func(t *testing.T, e *memdriver.Ensemble, n *wire.Network) {
		n.Authenticate(user, password)
		n.Stop(0, wire.SASLHello, true)
		const way = 50 * time.Millisecond
		for server := range 3 {
			n.Distance(server, way, way, 0)
		}
		c := open(t, url(n, password))
		passed := 0
		for range 3 {
			began := time.Now()
			s, err := c.Connect(t.Context(), 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			switch took := time.Since(began); {
			case s.Server() == wire.Addr(0) || took > 6*time.Second:
				t.Errorf("a session of %s after %v", s.Server(), took)
			case took == 8*way: // the connection, the handshake, the challenge, the proof
				passed++
			}
			if _, err := s.Create(t.Context(), "/a", nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
				t.Error(err)
			}
			e.KillConnection(s.ID())
			generation(t, s, 2)
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if passed == 0 {
			t.Error("no session took four round trips")
		}
		_, err := open(t, url(n, "another")).Connect(within(t, 20*time.Second), 10*time.Second)
		matches(t, err, driver.ErrAuthFailed)
	})
}

// A session never shows an older state than a reply has shown before: a server that is behind is passed
// by until it has caught up, also if there is no other.
func TestReadsAreNotOlderThanReplies(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble, n *wire.Network) {
		s, err := open(t, n.URL()).Connect(t.Context(), 40*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(s)
		if _, err := s.Create(t.Context(), "/a", nil, driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		behind := 0
		if s.Server() == wire.Addr(0) {
			behind = 1
		}
		memcontrol.Of(e).Lag(behind, 10*time.Second)
		if _, err := s.Set(t.Context(), "/a", []byte("new"), driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		for server := range 3 {
			n.Off(server, server != behind)
		}
		began := time.Now()
		e.KillConnection(s.ID())
		reach(t, s, driver.Suspended)
		read, err := s.Get(t.Context(), "/a")
		if err != nil || string(read.Data) != "new" {
			t.Errorf("read %q, %v, after a reply has shown %q", read.Data, err, "new")
		}
		if took := time.Since(began); took < 10*time.Second || s.Server() != wire.Addr(behind) {
			t.Errorf("read after %v at %s, want at least the 10s that %s is behind", took, s.Server(), wire.Addr(behind))
		}
	})
}
