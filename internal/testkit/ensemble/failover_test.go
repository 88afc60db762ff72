package ensemble_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// startThree runs an ensemble of three servers and returns its leader and followers.
func startThree(t *testing.T, c ensemble.Config) (e *ensemble.Ensemble, leader *ensemble.Server, followers []*ensemble.Server) {
	t.Helper()
	long.Test(t, "all tests with servers use what it tests")
	ensemble.Require(t)
	c.Servers = 3
	began := time.Now()
	e = ensemble.Start(t, c)
	t.Logf("three servers up after %v", time.Since(began))
	leader, err := e.Leader()
	must(t, err)
	followers = e.Followers()
	if len(followers) != 2 {
		t.Fatalf("followers: %v, want two", followers)
	}
	return e, leader, followers
}

// create creates a node through one server, as soon as that server accepts it.
func create(t *testing.T, s *ensemble.Server, path string) {
	t.Helper()
	conn := dial(t, s.Addr(), 5*time.Second)
	eventually(t, path+" is created through "+s.String(), func() bool {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		return err == nil || err == zk.ErrNodeExists
	})
}

func TestKilledLeaderIsReplacedAndComesBackAsFollower(t *testing.T) {
	t.Parallel()
	e, leader, _ := startThree(t, ensemble.Config{})
	create(t, leader, "/before")

	began := time.Now()
	leader.Kill()
	next, err := e.AwaitLeader()
	must(t, err)
	t.Logf("new leader after %v", time.Since(began))
	if next == leader {
		t.Fatalf("%v leads after it was killed", leader)
	}
	create(t, next, "/after")

	must(t, leader.Start())
	must(t, leader.AwaitRole(ensemble.Follower))
	must(t, e.AwaitServing())
	conn := dial(t, leader.Addr(), 5*time.Second)
	for _, path := range []string{"/before", "/after"} {
		if ok, _, err := conn.Exists(path); err != nil || !ok {
			t.Errorf("%s on the server that came back: %v, %v", path, ok, err)
		}
	}
}

func TestFrozenLeaderIsDeposedAndFollowsOnceThawed(t *testing.T) {
	t.Parallel()
	e, leader, _ := startThree(t, ensemble.Config{})
	must(t, leader.Freeze())
	if !leader.Frozen() || !leader.Running() {
		t.Errorf("frozen %v, running %v, want both", leader.Frozen(), leader.Running())
	}
	if role, err := leader.Role(); err == nil {
		t.Errorf("a frozen server answered: %v", role)
	}
	next, err := e.AwaitLeader(leader)
	must(t, err)
	create(t, next, "/while-frozen")
	must(t, leader.Thaw())
	must(t, leader.AwaitRole(ensemble.Follower))
}

func TestFrozenServerCanBeStopped(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	must(t, e.Server(0).Freeze())
	must(t, e.Server(0).Stop())
}

func TestCutFollowerGoesOnAnsweringWhileTheLeaderDropsIt(t *testing.T) {
	t.Parallel()
	const tick, limit = 500 * time.Millisecond, 40
	e, leader, followers := startThree(t, ensemble.Config{TickTime: tick, SyncLimit: limit})
	cut := followers[0]
	create(t, cut, "/a")
	conn := dial(t, cut.Addr(), 9*time.Second)
	sid := conn.SessionID()
	_, err := conn.Create("/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	must(t, err)

	other := dial(t, leader.Addr(), 10*time.Second)
	_, _, gone, err := other.ExistsW("/mine")
	must(t, err)
	began := time.Now()
	must(t, e.CutFromLeader(cut))
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatal("the leader did not expire the session of the cut follower's client")
	}
	t.Logf("session expired %v after the cut", time.Since(began))

	// The follower does not know yet that it is cut off, and neither does its client.
	if role, err := cut.Role(); err != nil || role != ensemble.Follower {
		t.Errorf("the cut follower is %q, %v, while it has not missed SyncLimit ticks", role, err)
	}
	if ok, _, err := conn.Exists("/mine"); err != nil || !ok || conn.SessionID() != sid {
		t.Errorf("a read through the cut follower: %v, %v, want the node, which only the other servers have removed", ok, err)
	}
	t.Logf("still answered %v after the cut", time.Since(began))

	must(t, cut.AwaitRole(ensemble.NotServing))
	if d := time.Since(began); d < (limit-2)*tick {
		t.Errorf("the cut follower gave up after %v, before SyncLimit ticks", d)
	}
	if now, err := e.Leader(); err != nil || now != leader {
		t.Errorf("leader is %v, %v, want %v as before", now, err, leader)
	}
	eventually(t, "the leader counts one synced follower", func() bool {
		stats, err := leader.Stats()
		return err == nil && stats["synced_followers"] == 1
	})

	e.Heal()
	must(t, cut.AwaitRole(ensemble.Follower))
	create(t, cut, "/healed")
}

func TestDeposedLeaderGoesOnAnswering(t *testing.T) {
	t.Parallel()
	e, old, _ := startThree(t, ensemble.Config{SyncLimit: 40})
	create(t, old, "/a")
	conn := dial(t, old.Addr(), 10*time.Second)
	must(t, e.CutServer(old))
	next, err := e.AwaitLeader(old)
	must(t, err)
	create(t, next, "/b")
	if role, err := old.Role(); err != nil || role != ensemble.Leader {
		t.Errorf("the deposed leader reports the role %q, %v, want %q", role, err, ensemble.Leader)
	}
	if now, err := e.Leader(); err != nil || now != next {
		t.Errorf("Leader is %v, %v, want %v, which has the higher epoch", now, err, next)
	}
	if ok, _, err := conn.Exists("/b"); err != nil || ok {
		t.Errorf("a read through the deposed leader: %v, %v, want the state before the new leader's write", ok, err)
	}
	must(t, old.AwaitRole(ensemble.NotServing))
	e.Heal()
	must(t, old.AwaitRole(ensemble.Follower))
	must(t, e.AwaitServing())
}

func TestOneWayCutFollowerHearsAndIsNotHeard(t *testing.T) {
	t.Parallel()
	e, leader, followers := startThree(t, ensemble.Config{SyncLimit: 20})
	deaf, mute := leader, followers[0]
	create(t, mute, "/a")
	conn := dial(t, mute.Addr(), 9*time.Second)
	must(t, e.Drop(mute, deaf))
	create(t, leader, "/heard")
	eventually(t, "what the leader commits reaches the mute follower", func() bool {
		ok, _, err := conn.Exists("/heard")
		return err == nil && ok
	})
	created := make(chan error, 1)
	go func() {
		_, err := conn.Create("/unheard", nil, 0, zk.WorldACL(zk.PermAll))
		created <- err
	}()
	other := dial(t, leader.Addr(), 9*time.Second)
	select {
	case err := <-created:
		t.Fatalf("a write through the mute follower was answered: %v", err)
	case <-time.After(time.Second):
	}
	if ok, _, err := other.Exists("/unheard"); err != nil || ok {
		t.Errorf("the leader has a write through the mute follower: %v, %v, want false", ok, err)
	}
	if e.Drop(leader, leader) == nil {
		t.Error("Drop from a server to itself returned no error")
	}
	e.Heal()
	must(t, e.AwaitServing())
	create(t, mute, "/healed")
}

func TestLinksThatDoNotExistCannotBeCut(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	for _, c := range []ensemble.Config{{}, {Servers: 3, DirectQuorum: true}} {
		e := ensemble.Start(t, c)
		create(t, e.Server(0), "/a")
		if e.CutFromLeader(e.Server(0)) == nil {
			t.Errorf("CutFromLeader returned no error in an ensemble without links: %+v", c)
		}
	}
}
