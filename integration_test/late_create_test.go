package integration_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
)

// TestServerReadsAnOldConnectionLate: a create stays in a connection that the client gives up, and
// its server reads it 12 s later. The session, with a timeout of 4 s, has come back to a server by
// then. If that is another voter, or the same server, the create is not applied. An observer and
// the follower that it follows are one for the leader: there the create is applied. No goroutine of
// the client uses the names again, and another client wants them.
func TestServerReadsAnOldConnectionLate(t *testing.T) {
	t.Parallel()
	long.Test(t, "three times 12 s of silence, and a session timeout of 4 s")
	ensemble.Require(t)
	port := freePort(t)
	e := ensemble.Start(t, ensemble.Config{Servers: 3, Observers: 1, Extra: []string{
		fmt.Sprint("observerMasterPort=", port), // of the only follower
		// Its connections do not expire, so that the test need not meet one of the buckets of 10 s.
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
	}})
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	follower, observer := e.Server(1-leader.Index()), e.Server(2)
	if !follower.Logged("ObserverMaster") {
		t.Fatalf("%v is not the master of an observer:\n%s", follower, follower.Log())
	}
	for what, back := range map[string]struct {
		to      *ensemble.Server
		applied bool
	}{
		"the follower of the observer": {follower, true},
		"the observer itself":          {observer, false},
		"another voter":                {leader, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			raw := dialRaw(t, leader.Addr(), 10*time.Second)
			other := dial(t, leader.Addr(), quick())
			// On a busy machine the session may be lost before the server has read the create. Its nodes
			// go with it, so such a run shows nothing either way, and begins again.
			for runs := 1; ; runs++ {
				o := newOldConnection(t, observer, back.to)
				if o.run(t, raw, other, back.applied) {
					return
				}
				if runs == 5 {
					t.Fatalf("the session was lost in each of %d runs, which prove nothing: the machine is too busy", runs)
				}
				t.Logf("the session was lost, so the run begins again: %+v", o.client.Stats())
				o.close()
			}
		})
	}
}

// freePort returns a port that no program listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// oldConnection is a client whose connection to one server falls silent. Then it has one to another
// server, or to the same one.
type oldConnection struct {
	client   *zklock.Client
	old, new *proxy.Proxy
	sent     time.Time    // when the create was sent
	before   zklock.Stats // before that
	root     string
}

func newOldConnection(t *testing.T, from, to *ensemble.Server) *oldConnection {
	t.Helper()
	o := &oldConnection{root: rootOf(t)}
	for at, server := range map[**proxy.Proxy]*ensemble.Server{&o.old: from, &o.new: to} {
		p, err := proxy.New(server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		*at = p
	}
	o.new.Refuse()
	o.client = dial(t, o.old.Addr()+","+o.new.Addr(), keys("session_timeout", "4s", "tick_time", "500ms", "pool_max_sessions", "1"))
	release(t, acquire(t, o.client.Mutex("used"))) // the root and the session exist
	return o
}

// run gives up a create, has the server read it 12 s later, and checks whether it is applied and what
// becomes of its nodes. It returns false if the session was lost before that could be seen.
func (o *oldConnection) run(t *testing.T, raw *zk.Conn, other *zklock.Client, want bool) (shown bool) {
	t.Helper()
	if !o.giveUp(t) {
		return false
	}
	time.Sleep(time.Until(o.sent.Add(12 * time.Second)))
	o.old.Heal() // delivers what it has held back
	appeared := time.Time{}
	for deadline := time.Now().Add(5 * time.Second); appeared.IsZero() && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if o.nodes(t, raw) > 0 {
			appeared = time.Now()
		}
	}
	applied := !appeared.IsZero()
	if !applied {
		_ = o.client.Ping(within(t)) // the client learns of the loss
		if o.lost() {
			return false
		}
	}
	if applied != want {
		t.Fatalf("the create was applied: %v, want %v", applied, want)
	}
	if !applied {
		return true
	}
	t.Logf("the create was applied %v after it was sent", appeared.Sub(o.sent).Round(time.Millisecond))
	if q, err := other.Contenders(within(t), "lone-1"); err != nil || len(q) > 0 && q[0].Late < 5*time.Second {
		t.Errorf("another client shows %+v, %v, want that it was created late", q, err)
	}
	for _, name := range []string{"lone-1", "lone-2"} {
		l, err := other.Mutex(name).Acquire(within(t), zklock.WithWait(time.Minute))
		if t.Logf("another client has %s %v after that, error %v", name, time.Since(appeared).Round(time.Millisecond), err); err != nil {
			t.Error(err)
			continue
		}
		release(t, l)
	}
	if n := o.nodes(t, raw); n > 0 {
		t.Errorf("%d nodes are left %v after that", n, time.Since(appeared).Round(time.Millisecond))
	}
	return true
}

// close ends the session and the connections.
func (o *oldConnection) close() {
	o.client.Close()
	o.old.Close()
	o.new.Close()
}

// lost reports whether the session that has sent the create was lost.
func (o *oldConnection) lost() bool { return o.client.Stats().SessionsLost > o.before.SessionsLost }

// giveUp acquires two names. Its create stays in the old connection, and the client gives up and gets
// the new one. giveUp returns false if the session was lost meanwhile.
func (o *oldConnection) giveUp(t *testing.T) bool {
	t.Helper()
	o.before = o.client.Stats()
	o.old.Stall(proxy.Up)
	o.old.Refuse()
	o.new.Heal()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	o.sent = time.Now()
	if _, err := zklock.All(o.client.Mutex("lone-1"), o.client.Mutex("lone-2")).Acquire(ctx); err == nil {
		t.Fatal("the acquisition has succeeded")
	}
	wait.Until(t, "a new connection, or the loss of the session", func() bool { return o.client.Stats().Reconnects > o.before.Reconnects || o.lost() })
	if o.lost() {
		return false
	}
	err := o.client.Ping(within(t))
	if o.lost() {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// nodes returns the number of queue nodes of both names.
func (o *oldConnection) nodes(t *testing.T, conn *zk.Conn) (n int) {
	t.Helper()
	for _, name := range []string{"lone-1", "lone-2"} {
		children, _, err := conn.Children(o.root + "/" + name)
		if err != nil && err != zk.ErrNoNode {
			t.Fatal(err)
		}
		for _, child := range children {
			if strings.HasPrefix(child, "_c_") {
				n++
			}
		}
	}
	return n
}
