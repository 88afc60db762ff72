package memdriver_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestFollowerCutFromLeader shows why "connected" does not mean "alive": the leader
// expires the session while the session's server goes on answering it.
func TestFollowerCutFromLeader(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		holder := connect(t, e.Connector(1), 4*time.Second)
		other := connect(t, e.Connector(2), 20*time.Second)
		create(t, holder, "/held", driver.Ephemeral)
		pass(100 * time.Millisecond)
		e.Partition(memdriver.AroundServer(1))

		pass(6 * time.Second)
		if has(t, other, "/held") {
			t.Fatal("the leader has not expired the session")
		}
		if !has(t, holder, "/held") || state(holder) != driver.Connected {
			t.Fatal("the follower no longer answers")
		}
		if gen, _ := holder.Conn(); gen != 1 {
			t.Fatalf("generation %d, want 1: the follower did not answer pings", gen)
		}

		pass(5 * time.Second)
		if st := state(holder); st != driver.Suspended {
			t.Fatalf("state %v after syncLimit ticks without a leader", st)
		}
		e.Heal()
		pass(2 * time.Second)
		if st := state(holder); st != driver.Expired {
			t.Fatalf("state %v after the follower has reconnected", st)
		}
	}, memdriver.WithServers(3), memdriver.WithSyncLimit(10))
}

// TestWritesHangBehindLostLeader: a write that waits for the leader delays the
// answers to the pings behind it, so the client gives the server up.
func TestWritesHangBehindLostLeader(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(1), 6*time.Second)
		pass(100 * time.Millisecond)
		e.Partition(memdriver.AroundServer(1))
		began := time.Now()
		_, err := s.Create(t.Context(), "/a", nil, driver.Persistent, open)
		want(t, err, driver.ErrConnLoss, "create")
		if took := time.Since(began); took < 3500*time.Millisecond || took > 4*time.Second {
			t.Fatalf("the client gave up after %v, want two thirds of the timeout since the last answer", took)
		}
	}, memdriver.WithServers(3), memdriver.WithSyncLimit(10))
}

// TestTouchesTravelWithPings: for the leader, the activity of a follower's client
// counts only once the follower has answered the leader's next ping.
func TestTouchesTravelWithPings(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(1), 4*time.Second)
		watcher := connect(t, e.Connector(0), 20*time.Second)
		create(t, s, "/e", driver.Ephemeral)
		_, events, err := watcher.Watch(t.Context(), "/e")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		// The leader pings at 1.5 s. This write is committed just before, and until
		// now only the creation of the session has touched it.
		pass(1450 * time.Millisecond)
		create(t, s, "/late", driver.Persistent)
		e.Partition(memdriver.AroundServer(1))
		<-events
		if took := time.Since(began); took != 5*time.Second {
			t.Fatalf("expired after %v, want 5s: the timeout, rounded up, since the creation", took)
		}
	}, memdriver.WithServers(3), memdriver.WithSyncLimit(10))
}

// TestLaggingFollower: a lagging server answers from its own state, refuses clients
// that have seen more, and catches up on a sync.
func TestLaggingFollower(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		behind := connect(t, e.Connector(2), 20*time.Second)
		ahead := connect(t, e.Connector(1, 2), 20*time.Second)
		for ahead.Server() != e.Servers()[1] {
			ahead = connect(t, e.Connector(1, 2), 20*time.Second)
		}
		e.Lag(2, time.Second)
		create(t, ahead, "/a", driver.Persistent)
		if has(t, behind, "/a") {
			t.Fatal("the lagging server has applied the create")
		}
		// The client that leaves server 1 must not connect to server 2 before that
		// has caught up: it would not find its own node.
		e.Partition(memdriver.AroundClients(1).Reset())
		began := time.Now()
		if !has(t, ahead, "/a") {
			t.Fatal("the client has connected to a server that does not have its node")
		}
		if took := time.Since(began); took < 900*time.Millisecond || took > 2*time.Second {
			t.Fatalf("connected after %v, want about a second", took)
		}
		create(t, connect(t, e.Connector(0), 20*time.Second), "/b", driver.Persistent)
		if has(t, behind, "/b") {
			t.Fatal("the lagging server has applied the create")
		}
		if err := behind.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		if !has(t, behind, "/b") {
			t.Fatal("a sync returned before the server had caught up")
		}
	}, memdriver.WithServers(3))
}

// TestSessionMoved: after the session has moved to another server, requests that
// arrive over the old connection are not executed.
func TestSessionMoved(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(1, 2), 6*time.Second)
		release := e.HoldRequests(s.ID())
		old := s.Server()
		_, err := s.Create(t.Context(), "/late", nil, driver.Persistent, open)
		want(t, err, driver.ErrConnLoss, "create")
		pass(500 * time.Millisecond)
		if state(s) != driver.Connected || s.Server() == old {
			t.Fatalf("state %v on server %s, want connected on another server", state(s), s.Server())
		}
		release()
		pass(time.Second)
		if has(t, s, "/late") {
			t.Fatal("the old server's request was executed")
		}
		create(t, s, "/new", driver.Persistent)
	}, memdriver.WithServers(3))
}

// TestAppliedLater: a request is executed even if its caller has given up.
func TestAppliedLater(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		release := e.HoldRequests(s.ID())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Create(ctx, "/late", nil, driver.Persistent, open)
		want(t, err, driver.ErrConnLoss, "create")
		want(t, err, context.DeadlineExceeded, "create")
		release()
		if !has(t, s, "/late") {
			t.Fatal("the request was lost")
		}
	})
}

// A follower loses its leader, and finds the leader of the term before, which does not know yet
// that it was deposed. The follower must not follow that one again: the two would commit other
// transactions than those that the later leader has committed since.
func TestFollowerDoesNotGoBackToADeposedLeader(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		connect(t, e.Connector(1, 2), 20*time.Second) // without a client the ensemble would stand still
		pass(100 * time.Millisecond)
		e.Partition(memdriver.AroundServer(0)) // silent, so server 0 goes on leading
		for range 200 {
			if pass(50 * time.Millisecond); e.Leader() > 0 {
				break
			}
		}
		leader := e.Leader()
		follower := 3 - leader
		s := connect(t, e.Connector(follower), 20*time.Second)
		create(t, s, "/new", driver.Persistent)
		if e.Roles()[0] != "leading" {
			t.Fatal("the deposed leader has noticed it, so the test shows nothing")
		}
		e.Heal()
		e.Partition(memdriver.BetweenServers(0, leader), memdriver.BetweenServers(1, 2).Reset())
		pass(10 * time.Second)
		other := connect(t, e.Connector(0, follower), 20*time.Second)
		create(t, other, "/newer", driver.Persistent)
		if !has(t, other, "/new") {
			t.Errorf("a write that a majority had committed is gone:\n%s", e.Dump())
		}
	}, memdriver.WithServers(3))
}
