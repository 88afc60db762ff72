package memdriver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestDeposedLeaderRevalidates: a session reconnects to a leader that has lost its
// followers and does not know it yet. That leader accepts the session, while the
// servers that have elected another leader expire it.
func TestDeposedLeaderRevalidates(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		if e.Leader() != 0 {
			t.Fatalf("leader %d", e.Leader())
		}
		holder := connect(t, e.Connector(0, 1), 4*time.Second)
		for holder.Server() != e.Servers()[1] {
			holder = connect(t, e.Connector(0, 1), 4*time.Second)
		}
		other := connect(t, e.Connector(2), 20*time.Second)
		create(t, holder, "/held", driver.Ephemeral)
		pass(200 * time.Millisecond)

		// The partition is silent for the leader, while the followers notice it.
		e.Partition(memdriver.AroundServer(0))
		e.Partition(memdriver.BetweenSession(holder.ID(), 1).Reset())
		pass(100 * time.Millisecond)
		if state(holder) != driver.Connected || holder.Server() != e.Servers()[0] {
			t.Fatalf("%v on %s, want revalidated by the old leader", state(holder), holder.Server())
		}
		if gen, _ := holder.Conn(); gen != 2 {
			t.Fatalf("generation %d", gen)
		}

		// The followers give their leader up after syncLimit ticks, elect another and
		// give the session its full timeout. The old leader has to go on for longer
		// than that, so that the two can disagree.
		both := false
		for range 200 {
			pass(100 * time.Millisecond)
			if e.Roles()[0] == "leading" && e.Leader() > 0 {
				both = true
				if !has(t, holder, "/held") {
					t.Fatal("the deposed leader has lost the node")
				}
			}
		}
		if !both {
			t.Fatal("the test never had two leaders at once")
		}
		if err := other.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		if has(t, other, "/held") {
			t.Fatal("the session has not expired")
		}
		e.Heal()
		pass(3 * time.Second)
		if st := state(holder); st != driver.Expired {
			t.Fatalf("%v after healing", st)
		}
	}, memdriver.WithServers(3))
}

// TestTwoHolders does the same with links that break: the followers know at once, the
// leader at its next tick.
func TestTwoHolders(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		holder := connect(t, e.Connector(0), 4*time.Second)
		pass(100 * time.Millisecond)
		e.Partition(memdriver.AroundServer(0).Reset())
		pass(300 * time.Millisecond)
		if e.Leader() <= 0 || e.Roles()[0] != "leading" {
			t.Fatalf("leader %d, roles %v", e.Leader(), e.Roles())
		}
		e.KillConnection(holder.ID())
		pass(20 * time.Millisecond)
		if gen, _ := holder.Conn(); gen != 2 || state(holder) != driver.Connected {
			t.Fatalf("generation %d, state %v: the old leader has not accepted the session", gen, state(holder))
		}
		pass(2 * time.Second)
		if role := e.Roles()[0]; role != "looking" {
			t.Fatalf("the old leader is still %s after a tick without followers", role)
		}
	}, memdriver.WithServers(3))
}

// TestElectionGivesFullTimeout: a new leader does not know when sessions were last
// heard, and gives each its full timeout. Epochs and zxids only grow.
func TestElectionGivesFullTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(1), 4*time.Second)
		other := connect(t, e.Connector(2), 20*time.Second)
		create(t, s, "/e", driver.Ephemeral)
		before, err := other.Get(t.Context(), "/e")
		if err != nil {
			t.Fatal(err)
		}
		e.Partition(memdriver.AroundSession(s.ID()))
		pass(3500 * time.Millisecond)
		e.Restart(0)
		pass(3 * time.Second)
		if !has(t, other, "/e") {
			t.Fatal("the session expired within the timeout that the new leader grants")
		}
		pass(3 * time.Second)
		if has(t, other, "/e") {
			t.Fatal("the session has not expired")
		}
		path := create(t, other, "/f", driver.Persistent)
		after, err := other.Get(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if after.Stat.Czxid>>32 != before.Stat.Czxid>>32+1 {
			t.Fatalf("zxid %#x after %#x: not the next epoch", after.Stat.Czxid, before.Stat.Czxid)
		}
		pass(2 * time.Second)
		if role := e.Roles()[0]; role != "following" {
			t.Fatalf("the restarted leader is %s", role)
		}
	}, memdriver.WithServers(3))
}

// TestNoMajority: a server answers reads for as long as it believes in its leader.
// Writes do not return.
func TestNoMajority(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(0), 20*time.Second)
		e.Partition(memdriver.AroundServer(0), memdriver.BetweenServers(1, 2))
		done := make(chan error, 1)
		go func() {
			_, err := s.Create(t.Context(), "/a", nil, driver.Persistent, open)
			done <- err
		}()
		pass(time.Second)
		select {
		case err := <-done:
			t.Fatalf("a write without a majority returned %v", err)
		default:
		}
		want(t, <-done, driver.ErrConnLoss, "create")
		pass(20 * time.Second)
		if e.Leader() != -1 || state(s) != driver.Suspended {
			t.Fatalf("leader %d, session %v", e.Leader(), state(s))
		}
		e.Heal()
		pass(2 * time.Second)
		if state(s) != driver.Connected {
			t.Fatalf("%v after healing", state(s))
		}
		// The session's server had the proposal in its log, which was the newest.
		if !has(t, s, "/a") {
			t.Fatal("an accepted proposal of the newest log was dropped")
		}
	}, memdriver.WithServers(3))
}

// TestRestartSingle: data and sessions survive the restart of a single server.
func TestRestartSingle(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		create(t, s, "/e", driver.Ephemeral)
		e.Restart(0)
		if state(s) != driver.Suspended {
			t.Fatalf("%v", state(s))
		}
		if !has(t, s, "/e") {
			t.Fatal("the ephemeral node was lost in the restart")
		}
		if gen, _ := s.Conn(); gen != 2 {
			t.Fatalf("generation %d", gen)
		}
	})
}

// TestSameFollowerCountsOnce: a follower that reconnects, and again acknowledges what
// it had acknowledged before, does not count twice towards a majority.
func TestSameFollowerCountsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(0), 20*time.Second)
		e.Partition(memdriver.BetweenServers(0, 2), memdriver.BetweenServers(0, 3), memdriver.BetweenServers(0, 4))
		done := make(chan error, 1)
		go func() {
			_, err := s.Create(t.Context(), "/a", nil, driver.Persistent, open)
			done <- err
		}()
		pass(100 * time.Millisecond)
		link := memdriver.BetweenServers(0, 1)
		e.Partition(link.Reset())
		e.Heal(link)
		pass(time.Second)
		if roles := e.Roles(); roles[0] != "leading" || roles[1] != "following" {
			t.Fatalf("roles %v", roles)
		}
		select {
		case err := <-done:
			t.Fatalf("a write with two servers of five returned, error %v", err)
		default:
		}
		e.Heal()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}, memdriver.WithServers(5), memdriver.WithSyncLimit(10))
}

// A sync can wait in a lagging server, behind commits that the server has not applied. The sync is
// no entry of the server's log. If an election took it for the log's last entry, the server with
// the newest log would seem to have the oldest.
func TestElectionAfterASyncThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(0), 10*time.Second)
		e.Partition(memdriver.AroundServer(2))
		pass(4 * time.Second)
		create(t, s, "/x", driver.Persistent)
		e.Lag(0, time.Hour)
		late := make(chan error, 1)
		go func() { late <- s.Sync(t.Context(), "/") }()
		pass(10 * time.Millisecond)
		e.Partition(memdriver.AroundServer(1)) // the only other server that has /x
		for !strings.Contains(e.Dump(), "mem-0 looking") {
			pass(100 * time.Millisecond)
		}
		e.Heal(memdriver.AroundServer(2))
		for e.Leader() < 0 {
			pass(100 * time.Millisecond)
		}
		e.Lag(0, 0)
		<-late
		if !has(t, s, "/x") {
			t.Error("a write that a majority had accepted is gone")
		}
	}, memdriver.WithServers(3), memdriver.WithSyncLimit(2), memdriver.WithLatency(time.Millisecond))
}

// A server that only a minority can reach must not be elected. Its voters could
// return to their former leader, and what they then commit with that leader would be
// older than the new epoch.
func TestLeaderOfAMinorityIsNotElected(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(0), 20*time.Second)
		pass(100 * time.Millisecond)
		// Server 4 reaches 1 and 2, and would vote for 2, which reaches no other
		// server.
		e.Partition(memdriver.BetweenServers(1, 2).Reset())
		for other := range 5 {
			if other != 0 && other != 3 {
				e.Partition(memdriver.BetweenServers(3, other))
			}
		}
		e.Partition(memdriver.AroundServer(0).Reset())
		pass(250 * time.Millisecond)
		e.Heal(memdriver.AroundServer(0))
		e.Partition(memdriver.BetweenServers(0, 2), memdriver.BetweenServers(0, 4))
		pass(400 * time.Millisecond) // server 0 has not checked yet whether it has a majority
		if e.Leader() != 0 {
			t.Fatalf("leader %d, roles %v: the test needs server 0 as leader", e.Leader(), e.Roles())
		}
		create(t, s, "/new", driver.Persistent)
		e.Heal()
		e.Partition(memdriver.AroundServer(0).Reset())
		pass(2 * time.Second)
		if !has(t, connect(t, e.Connector(1, 2, 3, 4), 20*time.Second), "/new") {
			t.Errorf("a write that a majority had committed is gone:\n%s", e.Dump())
		}
	}, memdriver.WithServers(5), memdriver.WithSyncLimit(10))
}

// A follower that rejoins its leader keeps what it has acknowledged: the leader counts on that.
func TestFollowerThatComesBackKeepsItsLog(t *testing.T) {
	const latency = 10 * time.Millisecond
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(0), 20*time.Second)
		pass(100 * time.Millisecond)
		e.Partition(memdriver.BetweenServers(0, 3), memdriver.BetweenServers(0, 4))
		done := make(chan error, 1)
		go func() {
			_, err := s.Create(t.Context(), "/new", nil, driver.Persistent, open)
			done <- err
		}()
		pass(2*latency + latency/2) // the acknowledgements of 1 and 2 are under way
		e.Partition(memdriver.BetweenServers(0, 2))
		pass(latency)
		e.Restart(1)
		for e.Roles()[1] != "following" {
			pass(time.Millisecond)
		}
		e.Heal(memdriver.BetweenServers(0, 2)) // with it, three of five servers have the write
		e.Partition(memdriver.AroundServer(0).Reset(), memdriver.AroundServer(2).Reset())
		if err := <-done; err != nil {
			t.Fatalf("the write was not committed, so the test shows nothing: %v", err)
		}
		if !has(t, connect(t, e.Connector(1, 3, 4), 20*time.Second), "/new") {
			t.Errorf("a write that a majority had accepted is gone:\n%s", e.Dump())
		}
	}, memdriver.WithServers(5), memdriver.WithSyncLimit(10), memdriver.WithLatency(latency))
}
