package integration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// The tests in this file use the servers' sample configuration with a longer syncLimit. A server that
// is cut off answers for syncLimit ticks. The leader has to expire the sessions before that, and
// sessions have to outlast the election of a leader, which takes seconds on a busy machine.
const (
	sampleTick      = 2 * time.Second
	sampleSyncLimit = 16
	shortSession    = 20 * time.Second
)

func sampleEnsemble(t *testing.T) (e *ensemble.Ensemble, leader *ensemble.Server, followers []*ensemble.Server) {
	t.Helper()
	ensemble.Require(t)
	e = ensemble.Start(t, ensemble.Config{Servers: 3, TickTime: sampleTick, SyncLimit: sampleSyncLimit})
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	if followers = e.Followers(); len(followers) != 2 {
		t.Fatalf("followers: %v, want two", followers)
	}
	return e, leader, followers
}

// duels are several locks before and during a partition. Each lock is held by a separate
// client on one side. One client on the other side waits for all of them. The holders'
// heartbeats are due at different times.
type duels struct {
	t         *testing.T
	holders   []*zklock.Client
	locks     []*zklock.Lock
	contender *zklock.Client
	ends      []chan ending
}

// ending is the result of a duel.
type ending struct {
	lock      *zklock.Lock
	err       error
	doneFirst bool          // whether the holder's Done was closed when the contender's Acquire returned
	valid     bool          // whether the holder's lock was valid then
	lead      time.Duration // the time from the close of Done until Acquire returned
}

// startDuels acquires all locks, and returns when the contender waits for each.
func startDuels(t *testing.T, holding, waiting string) *duels {
	t.Helper()
	const n = 4
	params := keys("session_timeout", shortSession.String(), "tick_time", sampleTick.String(), "connect_timeout", patience.String())
	hooks, begun := waits()
	d := &duels{t: t, contender: dial(t, waiting, params, zklock.WithHooks(hooks))}
	for i := range n {
		c := dial(t, holding, params)
		d.holders = append(d.holders, c)
		d.locks = append(d.locks, acquire(t, c.Mutex(name(i))))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	for i, held := range d.locks {
		end := make(chan ending, 1)
		d.ends = append(d.ends, end)
		lost := make(chan time.Time, 1)
		go func() {
			<-held.Done()
			lost <- time.Now()
		}()
		go func() {
			var e ending
			e.lock, e.err = d.contender.Mutex(name(i)).Acquire(ctx)
			got := time.Now()
			e.doneFirst, e.valid = isDone(held), held.Valid()
			if e.doneFirst {
				e.lead = got.Sub(<-lost)
			}
			end <- e
		}()
	}
	t.Cleanup(cancel)
	for range n {
		receive(t, "the contender to wait", begun)
	}
	for _, l := range d.locks {
		if !l.Valid() {
			t.Fatal("a lock was lost before the partition")
		}
	}
	return d
}

func name(i int) string { return fmt.Sprintf("duel/%d", i) }

// judge waits until the contender has acquired all locks. It fails the test if a holder did
// not know of its loss by then.
func (d *duels) judge() {
	d.t.Helper()
	for i, end := range d.ends {
		e := receive(d.t, "the contender's Acquire", end)
		if e.err != nil {
			d.t.Errorf("%s: the contender's Acquire: %v", name(i), e.err)
			continue
		}
		if !e.doneFirst || e.valid || e.lead < 0 {
			d.t.Errorf("%s: when the contender had the lock, the holder's Done was closed: %v (for %v), and its lock was valid: %v; want true and false",
				name(i), e.doneFirst, e.lead, e.valid)
			continue
		}
		held := d.locks[i]
		d.t.Logf("%s: Done was closed %v before the next Acquire returned", name(i), e.lead)
		if err := held.Err(); !errors.Is(err, zklock.ErrLost) {
			d.t.Errorf("%s: the holder's lock ended with %v, want ErrLost", name(i), err)
		}
		if err := held.Release(within(d.t)); !errors.Is(err, zklock.ErrLost) {
			d.t.Errorf("%s: Release of the lost lock: %v, want ErrLost", name(i), err)
		}
		if e.lock.Token().Compare(held.Token()) <= 0 {
			d.t.Errorf("%s: token %v after %v, want a greater one", name(i), e.lock.Token(), held.Token())
		}
		if !e.lock.Valid() {
			d.t.Errorf("%s: the contender's lock is not valid", name(i))
		}
	}
}

// overlapped checks that the partition deceives the control, a client that trusts its
// connection: when the next client has the control's lock, the control still believes that
// it holds it.
//
// Before 3.6 (ZOOKEEPER-2024) a server that is cut off stops answering all its clients when one
// of them has sent a write, such as a holder's heartbeat. So the control may notice.
func overlapped(t *testing.T, e *ensemble.Ensemble, control *trusting, taken <-chan error) {
	t.Helper()
	if err := receive(t, "the control's lock to be free", taken); err != nil {
		t.Fatalf("the control's lock was not taken over: %v", err)
	}
	if !control.believes() {
		since(t, e, "3.6", "a server answers reads and pings, while a write of another client waits for the leader, since")
		t.Errorf("the control noticed that its lock was lost (%v): this partition proves nothing", control.conn.State())
	}
}

// judgeBeside checks the holders with judge, and checks with overlapped that the partition has
// deceived the control. Each check is a subtest, since some servers do not deceive the control.
func (d *duels) judgeBeside(e *ensemble.Ensemble, control *trusting, taken <-chan error) {
	whole := d.t
	whole.Run("control", func(t *testing.T) { overlapped(t, e, control, taken) })
	whole.Run("holders", func(t *testing.T) {
		d.t = t
		d.judge()
	})
	d.t = whole
}

// TestHolderBehindACutFollowerKnowsBeforeTheNextGetsIn: the holder's server, which is cut off
// from the leader, goes on answering pings and reads while the leader expires the session.
func TestHolderBehindACutFollowerKnowsBeforeTheNextGetsIn(t *testing.T) {
	t.Parallel()
	e, leader, followers := sampleEnsemble(t)
	cut := followers[0]
	d := startDuels(t, cut.Addr(), followers[1].Addr())
	control := dialTrusting(t, []string{cut.Addr()}, shortSession, "/control")
	if err := control.take(); err != nil {
		t.Fatal(err)
	}
	taken := dialTrusting(t, []string{leader.Addr()}, shortSession, "/control").wait()

	t.Cleanup(e.Heal) // before the clients are closed
	if err := e.CutFromLeader(cut); err != nil {
		t.Fatal(err)
	}
	d.judgeBeside(e, control, taken)
	if role, err := cut.Role(); err != nil {
		t.Logf("at the end the cut server's role was %q, %v", role, err)
	}
}

// TestHolderThatReconnectsToADeposedLeaderKnowsBeforeTheNextGetsIn: the holder's server was
// the leader and does not know yet that it is deposed. When the holder reconnects, that
// server resumes the session as if it still led.
func TestHolderThatReconnectsToADeposedLeaderKnowsBeforeTheNextGetsIn(t *testing.T) {
	t.Parallel()
	e, old, followers := sampleEnsemble(t)
	p, err := proxy.New(old.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	d := startDuels(t, p.Addr(), followers[0].Addr()+","+followers[1].Addr())
	control := dialTrusting(t, []string{p.Addr()}, shortSession, "/control")
	if err := control.take(); err != nil {
		t.Fatal(err)
	}
	taken := dialTrusting(t, []string{followers[0].Addr(), followers[1].Addr()}, shortSession, "/control").wait()

	t.Cleanup(e.Heal)
	if err := e.CutServer(old); err != nil {
		t.Fatal(err)
	}
	next, err := e.AwaitLeader(old)
	if err != nil {
		t.Fatal(err)
	}
	// The client reconnects late, so that a lease counted from the new handshake would end
	// after the new leader expires the session. But the deposed leader still answers.
	eventually(t, "the holders' leases are half over", func() bool {
		return time.Until(d.locks[0].Until()) < shortSession/2
	})
	cutConns := p.KillConns()
	for i, c := range d.holders {
		eventually(t, "the holder has reconnected", func() bool { return c.Stats().Reconnects > 0 || isDone(d.locks[i]) })
		if isDone(d.locks[i]) {
			t.Fatalf("%s was lost before its holder reconnected: this partition proves nothing", name(i))
		}
	}
	if role, err := old.Role(); err != nil || role != ensemble.Leader {
		t.Fatalf("the deposed leader %v reports the role %q, %v: this partition proves nothing", old, role, err)
	}
	t.Logf("%v leads instead of %v; %d connections were reset and made again", next, old, cutConns)
	d.judgeBeside(e, control, taken)
}

// TestHolderBehindACutObserverKnowsBeforeTheNextGetsIn: an observer answers pings and reads
// after it was cut off from the leader, as a follower does.
func TestHolderBehindACutObserverKnowsBeforeTheNextGetsIn(t *testing.T) {
	t.Parallel()
	long.Test(t, "as that with a cut follower, with four servers")
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Servers: 4, Observers: 1, TickTime: sampleTick, SyncLimit: sampleSyncLimit})
	observer := e.Server(3)
	if role, err := observer.Role(); err != nil || role != ensemble.Observer {
		t.Fatalf("%v is %q, %v, want an observer", observer, role, err)
	}
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	d := startDuels(t, observer.Addr(), leader.Addr())
	control := dialTrusting(t, []string{observer.Addr()}, shortSession, "/control")
	if err := control.take(); err != nil {
		t.Fatal(err)
	}
	taken := dialTrusting(t, []string{leader.Addr()}, shortSession, "/control").wait()

	t.Cleanup(e.Heal) // before the clients are closed
	if err := e.CutFromLeader(observer); err != nil {
		t.Fatal(err)
	}
	d.judgeBeside(e, control, taken)
}

// TestPingNeedsAQuorum: a follower that is cut off from its leader answers reads, and a Ping through
// it does not succeed.
func TestPingNeedsAQuorum(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	zk := ensemble.Start(t, ensemble.Config{Servers: 3, SyncLimit: 60, MaxSessionTimeout: time.Minute})
	leader, err := zk.Leader()
	if err != nil {
		t.Fatal(err)
	}
	follower := zk.Server((leader.Index() + 1) % 3)
	c := dial(t, follower.Addr(), quick("connect_timeout", patience.String(), "session_timeout", "1m"))
	if err := c.Ping(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := zk.CutFromLeader(follower); err != nil {
		t.Fatal(err)
	}
	defer zk.Heal()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := c.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Ping without a quorum: %v, want the context's error", err)
	}
}
