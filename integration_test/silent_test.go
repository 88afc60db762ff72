package integration_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/election"
)

// silence is a fault that makes one server fall silent: its connections stay open, and nothing arrives on them.
type silence struct {
	leader bool // the server leads; else it is a follower
	begin  func(*ensemble.Ensemble, *ensemble.Server) error
	end    func(*ensemble.Server) error
	calls  bool // calls take no more than longestCall; without a leader no server answers them
}

// stopped is the fault of a server whose process stops.
func stopped(leader bool) silence {
	return silence{
		leader: leader, calls: !leader, end: (*ensemble.Server).Thaw,
		begin: func(_ *ensemble.Ensemble, s *ensemble.Server) error { return s.Freeze() },
	}
}

// longestCall is how long a call may take while a server is silent, in a long run. A call waits for the client to leave
// the server, which takes at most two seconds: zkdriver.TestSilentFollowerCostsNoLockAtAnyInstant holds that. The rest is
// for a machine that is busy.
const longestCall = 8 * time.Second

// TestSilentServerCostsNoLock: with the settings of users, one server of three falls silent. No lock is lost,
// whatever the client does, and calls go on at the other servers. In a long run the faults repeat, and each
// session timeout from 4 s to 40 s has its turn.
func TestSilentServerCostsNoLock(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs SIGSTOP")
	}
	long.Parallel(t)
	runs := long.Count(t, "ZKLOCK_SILENT", 1, 10)
	t.Run("follower", func(t *testing.T) { silentServer(t, runs, ensemble.Config{}, stopped(false), nil) })
	if !long.On() {
		return
	}
	t.Run("leader", func(t *testing.T) { silentServer(t, runs, ensemble.Config{}, stopped(true), nil) })
	for _, timeout := range []string{"4s", "10s", "20s", "30s", "40s"} {
		params := keys("session_timeout", timeout)
		config := ensemble.Config{}
		if timeout == "4s" { // the least that servers with this tick grant is more than that with the default
			params.Set("tick_time", "1s")
			config.TickTime = time.Second
		}
		t.Run("follower at "+timeout, func(t *testing.T) { silentServer(t, runs, config, stopped(false), params) })
	}
	for _, timeout := range []string{"20s", "25s", "30s", "40s"} {
		t.Run("leader at "+timeout, func(t *testing.T) {
			silentServer(t, runs, ensemble.Config{}, stopped(true), keys("session_timeout", timeout))
		})
	}
}

// silentServer lets a server of three fall silent, several times.
func silentServer(t *testing.T, runs int, config ensemble.Config, fault silence, params url.Values) {
	ensemble.Require(t)
	config.Servers, config.DirectQuorum, config.InitLimit, config.SyncLimit = 3, true, 10, 5
	config.TickTime = cmp.Or(config.TickTime, 2*time.Second)
	e := ensemble.Start(t, config)
	for run := range runs {
		t.Run(fmt.Sprint("run ", run), func(t *testing.T) { silentOnce(t, e, fault, params) })
		if err := e.AwaitServing(); err != nil {
			t.Fatal(err)
		}
	}
}

func silentOnce(t *testing.T, e *ensemble.Ensemble, fault silence, params url.Values) {
	// The idle client holds, leads and waits, and makes no call meanwhile. The busy one holds, too.
	seats := new(seating)
	at := zklock.WithHooks(zklock.Hooks{Session: seats.note})
	idle, busy, rival := dial(t, e.Hosts(), params, at), dial(t, e.Hosts(), params, at), dial(t, e.Hosts(), params)
	keeper := dial(t, e.Hosts(), merged(params, "keep", "5m"), at)
	var held []*zklock.Lock
	for i := range 20 {
		held = append(held, acquire(t, idle.Mutex(fmt.Sprint("idle-", i))), acquire(t, busy.Mutex(fmt.Sprint("busy-", i))))
	}
	term, err := election.New(idle, "leads").Campaign(within(t))
	if err != nil {
		t.Fatal(err)
	}
	held = append(held, term.Lock)
	for i := range 4 {
		release(t, acquire(t, keeper.Mutex(fmt.Sprint("kept-", i))))
	}
	var ahead []*zklock.Lock
	var behind []*attempt
	for i := range 4 {
		name := fmt.Sprint("waited-", i)
		ahead = append(ahead, acquire(t, rival.Mutex(name)))
		behind = append(behind, try(t, within(t), idle.Mutex(name)))
	}
	eventually(t, "all wait", func() bool { return idle.Stats().Waiting == len(behind) })
	timeout := held[0].SessionTimeout()
	<-time.After(timeout/4 + rand.N(timeout/4)) // leases are shorter after a while than when they were new

	server, err := seats.choose(e, fault.leader)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := fault.begin(e, server); err != nil {
		t.Fatal(err)
	}
	ended := sync.OnceValue(func() error { return fault.end(server) })
	t.Cleanup(func() { _ = ended() })

	// Calls at the fault and after it, one goroutine for each kind. A lease that is not renewed ends meanwhile.
	last := timeout
	if fault.leader {
		last = max(timeout, 20*time.Second) // until the others have another leader
	}
	window, over := context.WithTimeout(context.Background(), last)
	defer over()
	slowest := new(stopwatch)
	var callers sync.WaitGroup
	for what, call := range map[string]func(i int) error{
		"Acquire":    func(i int) error { return use(busy.Mutex(fmt.Sprint("used-", i%8)).Acquire(within(t))) },
		"TryAcquire": func(i int) error { return use(busy.Mutex(fmt.Sprint("tried-", i%8)).TryAcquire(within(t))) },
		"Ping":       func(int) error { return busy.Ping(within(t)) },
		"Healthy":    func(int) error { return busy.Healthy() },
		"kept":       func(i int) error { return use(keeper.Mutex(fmt.Sprint("kept-", i%4)).Acquire(within(t))) },
	} {
		callers.Go(func() {
			for i := 0; window.Err() == nil; i++ {
				from := time.Now()
				err := call(i)
				slowest.note(what, time.Since(from), err)
				select {
				case <-time.After(100 * time.Millisecond): // it paces the calls, and proves nothing
				case <-window.Done():
				}
			}
		})
	}
	for i := range behind { // the one ahead leaves: the waiter is granted
		callers.Go(func() {
			<-time.After(time.Duration(i) * 600 * time.Millisecond) // some before the client has left the server
			from := time.Now()
			err := ahead[i].Release(within(t))
			lock, failed := behind[i].result(t)
			slowest.note("wait", time.Since(from), cmp.Or(err, failed))
			if lock != nil {
				_ = lock.Release(within(t))
			}
		})
	}
	callers.Wait()

	lost := 0
	for _, l := range held {
		if isDone(l) {
			lost++
		}
	}
	sessions := idle.Stats().SessionsLost + busy.Stats().SessionsLost + keeper.Stats().SessionsLost
	t.Logf("%v silent from %v: %d of %d locks and %d of 6 sessions lost; kept %d of 4; slowest: %v; the servers of the sessions then: %v",
		server, began.Format("15:04:05.000"), lost, len(held), sessions, keeper.Stats().Kept, slowest, seats)
	if lost > 0 || sessions > 0 {
		t.Errorf("%d locks and %d sessions lost, want none", lost, sessions)
	}
	if fault.calls && long.On() { // a machine that is busy with other tests takes seconds for each call
		slowest.check(t)
	}
	if err := ended(); err != nil {
		t.Fatal(err)
	}
	for _, l := range held {
		if err := l.Release(within(t)); err != nil && !isDone(l) {
			t.Error(err)
		}
	}
}

// merged returns URL parameters with another one.
func merged(params url.Values, key, value string) url.Values {
	all := keys(key, value)
	maps.Copy(all, params)
	return all
}

// use releases a lock at once.
func use(l *zklock.Lock, err error) error {
	if err != nil {
		return err
	}
	return l.Release(context.Background())
}

// seating is where the sessions of a client are.
type seating struct {
	mu sync.Mutex
	at map[int64]string // guarded by mu; the server of each session

	ends []string // guarded by mu; why sessions were lost
}

func (s *seating) note(e zklock.SessionEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = make(map[int64]string)
	}
	if s.at[e.ID] = e.Server; e.State != driver.Connected {
		delete(s.at, e.ID)
	}
	if e.State == driver.Expired {
		s.ends = append(s.ends, fmt.Sprintf("session %#x at %s: %v", e.ID, time.Now().Format("15:04:05.000"), e.Err))
	}
}

// choose returns the leader, or the follower that has the most sessions.
func (s *seating) choose(e *ensemble.Ensemble, leader bool) (*ensemble.Server, error) {
	lead, err := e.Leader()
	if leader || err != nil {
		return lead, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	has := make(map[string]int)
	for _, addr := range s.at {
		has[addr]++
	}
	return slices.MaxFunc(slices.DeleteFunc(e.Servers(), func(s *ensemble.Server) bool { return s == lead }),
		func(a, b *ensemble.Server) int { return has[a.Addr()] - has[b.Addr()] }), nil
}

// String shows the servers of the sessions.
func (s *seating) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.at, s.ends)
}

// stopwatch keeps the slowest call of each kind.
type stopwatch struct {
	mu     sync.Mutex
	took   map[string]time.Duration // guarded by mu
	failed map[string]int           // guarded by mu
	why    map[string]error         // guarded by mu; the last failure
}

func (s *stopwatch) note(what string, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.took == nil {
		s.took, s.failed, s.why = make(map[string]time.Duration), make(map[string]int), make(map[string]error)
	}
	s.took[what] = max(s.took[what], took)
	if err != nil {
		s.failed[what]++
		s.why[what] = err
	}
}

// check fails the test if a call has failed, or has taken too long.
func (s *stopwatch) check(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, n := range s.failed {
		t.Errorf("%s failed %d times: %v", what, n, s.why[what])
	}
	for what, took := range s.took {
		if took > longestCall {
			t.Errorf("%s took %v, want %v at most", what, took, longestCall)
		}
	}
}

// String shows the slowest calls.
func (s *stopwatch) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text []string
	for _, what := range []string{"Acquire", "TryAcquire", "Ping", "Healthy", "kept", "wait"} {
		text = append(text, fmt.Sprintf("%s %v (%d failed)", what, s.took[what].Round(10*time.Millisecond), s.failed[what]))
	}
	return strings.Join(text, ", ")
}
