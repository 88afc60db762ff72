package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// lead stands for election until the parent process writes a line or dies.
func (w *worker) lead(ctx context.Context, c *zklock.Client, stdin *bufio.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = stdin.ReadString('\n')
		cancel()
	}()
	err := election.New(c, w.task.Name).Run(ctx, func(ctx context.Context, t *election.Term) error {
		w.print(report{What: "held", Token: t.Token()})
		<-ctx.Done()
		return nil
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// expiries finds in a server's log when it has expired sessions.
var expiries = regexp.MustCompile(`(?m)^(\d\d:\d\d:\d\d,\d\d\d) .*Expiring session`)

// expired returns when a server has expired a session for the last time.
func expired(t *testing.T, s *ensemble.Server) time.Time {
	t.Helper()
	all := expiries.FindAllStringSubmatch(s.Log(), -1)
	if len(all) == 0 {
		t.Fatalf("%v has logged no expiry:\n%s", s, s.Log())
	}
	at, err := time.ParseInLocation("15:04:05,000", all[len(all)-1][1], time.Local)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	at = time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.Local)
	if at.After(now.Add(time.Hour)) { // midnight has passed
		at = at.AddDate(0, 0, -1)
	}
	return at
}

// TestKilledLeaderIsFollowed kills the process of a leader. The servers, and not zklock, decide
// when its session expires: a session timeout after the ensemble's leader has last heard from it,
// or up to a tick later. A follower reports what it has heard within half a tick. So the session is
// expired at most the timeout and two ticks after the kill, if the servers are not late. zklock's
// part begins with the expiry: the next candidate learns of it by one event, and leads after one
// read. That is counted, and the times are printed. In virtual time the bound on the whole is a
// test of package election.
func TestKilledLeaderIsFollowed(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	const (
		tick    = time.Second
		timeout = 10 * time.Second // long enough that the first term outlasts a busy machine's pauses
	)
	zk := ensemble.Start(t, ensemble.Config{Servers: 3, TickTime: tick, MaxSessionTimeout: calmTimeout}) // slow needs that
	leader, err := zk.Leader()
	if err != nil {
		t.Fatal(err)
	}
	first := startWorker(t, task{Role: "lead", Name: "billing", URL: zk.URL(rootOf(t), keys("session_timeout", timeout.String(), "tick_time", tick.String(), "pool_max_sessions", "1"))})
	first.await("ready")
	first.start()
	held := first.await("held")
	hooks, waiting := waits()
	// The session of the second candidate sends no heartbeats during the measurement.
	b := calmDialWith(t, zk.Server((leader.Index()+1)%3), slow("tick_time", tick.String(), "connect_timeout", patience.String()), zklock.WithHooks(hooks))
	var led time.Time
	second := campaigning(t, election.New(b.Client, "billing"), func() { led = time.Now() })
	receive(t, "the wait of the second candidate", waiting)
	before, killed := b.proxy.Counts(), time.Now()
	if err := first.cmd.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	next := receive(t, "the second candidate's term", second)
	cost := b.since(before)
	session := expired(t, leader).Sub(killed)
	t.Logf("the servers expired the session %v after the kill: at most %v if they are not late; the next candidate led %v after that: %v",
		session, timeout+2*tick, led.Sub(killed)-session, cost)
	if !cost.equal(wake) {
		t.Errorf("the next candidate needed %v, want %v", cost, wake)
	}
	if next.Token().Compare(held.Token) <= 0 {
		t.Errorf("token %v after %v", next.Token(), held.Token)
	}
	if err := next.Resign(within(t)); err != nil {
		t.Error(err)
	}
}

// wake is what the next candidate needs to lead: after the event of the node ahead it reads its
// own node. The lease of a candidate that is next in line is proven already.
var wake = cost{map[string]int{"getData": 1}, map[string]int{}, 1}

// TestResignedLeaderIsFollowed counts what it takes from the call of Resign until the next
// candidate leads: one request of the leader, and one round trip of the next.
func TestResignedLeaderIsFollowed(t *testing.T) {
	t.Parallel()
	zk := calm(t)
	hooks, waiting := waits()
	a, b := calmDial(t, zk), calmDial(t, zk, zklock.WithHooks(hooks))
	first, err := election.New(a.Client, "billing").Campaign(within(t))
	if err != nil {
		t.Fatal(err)
	}
	second := campaigning(t, election.New(b.Client, "billing"))
	receive(t, "the wait of the second candidate", waiting) // it watches the first one by then
	beforeA, beforeB := a.proxy.Counts(), b.proxy.Counts()
	if err := first.Resign(within(t)); err != nil {
		t.Fatal(err)
	}
	next := receive(t, "the second candidate's term", second)
	costA, costB := a.since(beforeA), b.since(beforeB)
	t.Logf("the former leader: %v; the next one: %v", costA, costB)
	if !costA.equal(oneDelete) {
		t.Errorf("the resignation cost %v, want %v", costA, oneDelete)
	}
	if !costB.equal(wake) {
		t.Errorf("the next candidate needed %v, want %v", costB, wake)
	}
	if err := next.Resign(within(t)); err != nil {
		t.Error(err)
	}
}

// campaigning stands for election in the background. It calls won as soon as the term has begun.
func campaigning(t *testing.T, e *election.Election, won ...func()) <-chan *election.Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	got, done := make(chan *election.Term, 1), make(chan struct{})
	go func() {
		defer close(done)
		term, err := e.Campaign(ctx)
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("campaign: %v", err)
			}
			close(got)
			return
		}
		for _, f := range won {
			f()
		}
		got <- term
	}()
	t.Cleanup(func() { cancel(); <-done })
	return got
}

// awaitCandidates waits until an election has n candidates.
func awaitCandidates(t *testing.T, c *zklock.Client, name string, n int) []zklock.Contender {
	t.Helper()
	var all []zklock.Contender
	eventually(t, fmt.Sprintf("%s has %d candidates", name, n), func() bool {
		var err error
		all, err = c.Contenders(within(t), name)
		return err == nil && len(all) == n
	})
	return all
}

// perCut is the number of leaders that are cut off together.
const perCut = 4

// TestLeaderBehindACutFollowerStopsFirst: a leader's server that is cut off from the ensemble
// goes on answering it. The leader's context ends before the next candidate leads, each time.
// ZKLOCK_ELECTION_CUTS is the number of leaders.
func TestLeaderBehindACutFollowerStopsFirst(t *testing.T) {
	t.Parallel()
	long.Test(t, "as that of a lock, with three servers of its own")
	leaders := long.Count(t, "ZKLOCK_ELECTION_CUTS", 2*perCut, 2*perCut)
	e, _, _ := sampleEnsemble(t)
	t.Cleanup(e.Heal) // before the clients are closed
	t.Log(e.Settings(shortSession, 2*perCut, fmt.Sprint("billing/0/", perCut)))
	done := 0
	for round := 0; done < leaders; round++ {
		n := min(perCut, leaders-done)
		cutLeaders(t, e, round, n)
		if done += n; t.Failed() {
			break
		}
		t.Logf("%d of %d leaders stopped before the next one led, in %d cuts", done, leaders, round+1)
	}
}

// cutLeaders cuts off the server of n leaders.
func cutLeaders(t *testing.T, e *ensemble.Ensemble, round, n int) {
	t.Helper()
	var followers []*ensemble.Server
	eventually(t, "there are two followers", func() bool { // one comes back from the last cut
		followers = e.Followers()
		return len(followers) == 2
	})
	params := keys("session_timeout", shortSession.String(), "tick_time", sampleTick.String(), "connect_timeout", patience.String(), "pool_max_sessions", "1")
	other := dial(t, followers[1].Addr(), params)
	type leader struct {
		name   string
		began  chan *election.Term
		ctx    context.Context // of the term; read after began
		ended  chan int64      // when it ended
		stop   func()
		second <-chan *election.Term
		next   chan int64 // when the next candidate led
	}
	all := make([]*leader, n)
	for i := range all {
		l := &leader{name: fmt.Sprintf("billing/%d/%d", round, i), began: make(chan *election.Term, 10), ended: make(chan int64, 10), next: make(chan int64, 1)}
		all[i] = l
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		client := dial(t, followers[0].Addr(), params)
		first := true
		go func() {
			defer close(done)
			_ = election.New(client, l.name).Run(ctx, func(ctx context.Context, term *election.Term) error {
				if first {
					first, l.ctx = false, ctx
					l.began <- term
				}
				<-ctx.Done()
				l.ended <- monotonic()
				return nil
			})
		}()
		l.stop = func() { cancel(); <-done }
		t.Cleanup(l.stop)
	}
	terms := make([]*election.Term, n)
	for i, l := range all {
		terms[i] = receive(t, "the first term", l.began)
		l.second = campaigning(t, election.New(other, l.name), func() {
			ended, valid, at := l.ctx.Err() != nil, terms[i].Valid(), monotonic()
			if !ended || valid {
				t.Errorf("%s: the leader's context has ended: %v, and its term is valid: %v, when the next one leads", l.name, ended, valid)
			}
			l.next <- at
		})
		awaitCandidates(t, other, l.name, 2)
	}
	for i, l := range all {
		if l.ctx.Err() != nil || !terms[i].Valid() {
			t.Fatalf("%s: the term has ended before the cut: %v", l.name, terms[i].Err())
		}
	}
	if err := e.CutFromLeader(followers[0]); err != nil {
		t.Fatal(err)
	}
	for i, l := range all {
		at, ended := receive(t, "the next term", l.next), receive(t, "the end of the first term", l.ended)
		t.Logf("%s: the leader's function returned %v before the next one led", l.name, time.Duration(at-ended))
		if err := terms[i].Err(); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("%s: the first term has ended with %v, want %v", l.name, err, zklock.ErrLost)
		}
	}
	for i, l := range all {
		term := <-l.second
		if term.Token().Compare(terms[i].Token()) <= 0 {
			t.Errorf("%s: token %v after %v", l.name, term.Token(), terms[i].Token())
		}
		l.stop()
		if err := term.Resign(within(t)); err != nil {
			t.Error(err)
		}
	}
	e.Heal()
	if err := e.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		awaitCandidates(t, other, l.name, 0) // none is left behind
	}
}
