package integration_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
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
// whatever the client does, and calls go on at the other servers. In a long run the faults repeat, and clients with each
// session timeout from 4 s to 40 s meet each of them. This is the program that shows it:
//
//	ZKLOCK_LONG=1 ZKLOCK_SILENT=10 go test -count=1 -timeout=0 -v -run='^TestSilent(Server|Route)' ./integration_test
func TestSilentServerCostsNoLock(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs SIGSTOP")
	}
	long.Parallel(t)
	t.Run("follower", func(t *testing.T) { silentServer(t, ensemble.Config{}, stopped(false), eachTimeout()...) })
	if !long.On() {
		return
	}
	t.Run("leader", func(t *testing.T) { silentServer(t, ensemble.Config{}, stopped(true), eachTimeout()...) })
	// The least timeout that servers with the usual tick grant is more than 4 s with the default of tick_time.
	short := outfit{name: "4s", params: keys("session_timeout", "4s", "tick_time", "1s")}
	quick := ensemble.Config{TickTime: time.Second}
	t.Run("follower at 4s", func(t *testing.T) { silentServer(t, quick, stopped(false), short) })
	t.Run("leader at 4s", func(t *testing.T) { silentServer(t, quick, stopped(true), short) })
}

// The command that docs/operations.md has for it prints that no lock was lost, and where the session went.
func TestCommandShowsASilentServer(t *testing.T) {
	long.Test(t, "it lasts as long as a session timeout")
	ensemble.Require(t)
	out := goRun(t, "run", "./integration_test/silent")
	for _, want := range []string{"0 of 41 locks were lost", "falls silent", "no lock was lost"} {
		if !strings.Contains(out, want) {
			t.Errorf("the command prints no %q:\n%s", want, out)
		}
	}
}

// outfit is what one user's clients are configured with, and what has happened to them in all runs.
type outfit struct {
	name   string
	params url.Values
	secure bool // zks://

	seated, runs, losing, locks, lost, sessions int // clients at the server; runs, those with losses; locks
	stopwatch                                   *stopwatch
}

// eachTimeout returns the defaults, and in a long run other session timeouts and TLS.
func eachTimeout() []outfit {
	all := []outfit{{name: "default"}}
	if long.On() {
		for _, timeout := range []string{"10s", "20s", "40s"} {
			all = append(all, outfit{name: timeout, params: keys("session_timeout", timeout)})
		}
		all = append(all, outfit{name: "TLS", secure: true})
	}
	return all
}

// silentServer lets a server of three fall silent, several times.
func silentServer(t *testing.T, config ensemble.Config, fault silence, all ...outfit) {
	ensemble.Require(t)
	shipped := ensemble.Shipped(3)
	config.Servers, config.InitLimit, config.SyncLimit = shipped.Servers, shipped.InitLimit, shipped.SyncLimit
	config.TickTime, config.DirectQuorum = cmp.Or(config.TickTime, shipped.TickTime), true
	ca := newAuthority(t, "ours")
	e := secureEnsemble(t, ca.issue(time.Hour*10, "server", "localhost"), []*authority{ca}, config)
	pem := e.files.write("ca.pem", ca.pem)
	for i := range all {
		if all[i].stopwatch = new(stopwatch); all[i].secure {
			all[i].params = keys("tls_ca", pem, "tls_server_name", "localhost")
		}
	}
	for run := range long.Count(t, "ZKLOCK_SILENT", 1, 10) {
		t.Run(fmt.Sprint("run ", run), func(t *testing.T) { silentOnce(t, e.Ensemble, fault, all) })
		if err := e.AwaitServing(); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range all {
		t.Logf("%-8s %2d runs, %2d sessions at the server: %2d runs lost %3d of %4d locks, and %d sessions; slowest: %v", o.name, o.runs, o.seated, o.losing, o.lost, o.locks, o.sessions, o.stopwatch)
	}
}

func silentOnce(t *testing.T, e *ensemble.Ensemble, fault silence, all []outfit) {
	var teams []*team
	for i := range all {
		teams = append(teams, gather(t, e, &all[i]))
	}
	longest := time.Duration(0)
	for _, m := range teams {
		longest = max(longest, m.timeout)
	}
	<-time.After(longest/4 + rand.N(longest/4)) // leases are shorter after a while than when they were new
	server, err := choose(e, fault.leader, teams)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range teams {
		m.seated += m.seats.count(server)
		t.Logf("%s: %d sessions are at the server: %v", m.name, m.seats.count(server), m.seats)
	}
	last := longest // a lease that is not renewed ends meanwhile
	if fault.leader {
		last = max(longest, 20*time.Second) // until the others have another leader
	}
	window, over := context.WithTimeout(context.Background(), last)
	defer over()
	// Calls before the fault, at it and after it.
	var callers sync.WaitGroup
	for _, m := range teams {
		m.call(t, window, &callers)
	}
	<-time.After(rand.N(200 * time.Millisecond))
	began := time.Now()
	if err := fault.begin(e, server); err != nil {
		t.Fatal(err)
	}
	ended := sync.OnceValue(func() error { return fault.end(server) })
	t.Cleanup(func() { _ = ended() })
	for _, m := range teams {
		m.succeed(t, &callers)
	}
	callers.Wait()
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("%v silent from %v, load %.14s", server, began.Format("15:04:05.000"), load)
	for _, m := range teams {
		m.report(t, fault)
	}
	if err := ended(); err != nil {
		t.Fatal(err)
	}
	for _, m := range teams {
		for _, l := range m.held {
			if err := l.Release(within(t)); err != nil && !isDone(l) {
				t.Error(err)
			}
		}
	}
}

// team is the clients of one outfit in one run. The idle one holds, leads and waits, and makes no call meanwhile. The
// busy one holds, too.
type team struct {
	*outfit
	idle, busy, keeper *zklock.Client
	timeout            time.Duration
	held, ahead        []*zklock.Lock
	behind             []*attempt // each waits for one of ahead
	slowest            *stopwatch
	seats              *seating
}

func gather(t *testing.T, e *ensemble.Ensemble, o *outfit) *team {
	seats := new(seating)
	at := zklock.WithHooks(zklock.Hooks{Session: seats.note})
	open := func(params url.Values, opts ...zklock.Option) *zklock.Client {
		if o.secure {
			return dialTLS(t, "", e.SecureHosts(), params, opts...)
		}
		return dial(t, e.Hosts(), params, opts...)
	}
	rival := open(o.params)
	m := &team{outfit: o, idle: open(o.params, at), busy: open(o.params, at), keeper: open(merged(o.params, "keep", "5m"), at), slowest: new(stopwatch), seats: seats}
	name := func(kind string, i int) string { return fmt.Sprint(o.name, "-", kind, "-", i) }
	for i := range 20 {
		m.held = append(m.held, acquire(t, m.idle.Mutex(name("idle", i))), acquire(t, m.busy.Mutex(name("busy", i))))
	}
	term, err := election.New(m.idle, name("leads", 0)).Campaign(within(t))
	if err != nil {
		t.Fatal(err)
	}
	m.held = append(m.held, term.Lock)
	for i := range 4 {
		release(t, acquire(t, m.keeper.Mutex(name("kept", i))))
		m.ahead = append(m.ahead, acquire(t, rival.Mutex(name("waited", i))))
		m.behind = append(m.behind, try(t, within(t), m.idle.Mutex(name("waited", i))))
	}
	eventually(t, "all wait", func() bool { return m.idle.Stats().Waiting == len(m.behind) })
	m.timeout = m.held[0].SessionTimeout()
	return m
}

// call makes calls until window ends, one goroutine for each kind.
func (m *team) call(t *testing.T, window context.Context, callers *sync.WaitGroup) {
	name := func(kind string, i int) string { return fmt.Sprint(m.name, "-", kind, "-", i) }
	for what, call := range map[string]func(i int) error{
		"Acquire":    func(i int) error { return use(m.busy.Mutex(name("used", i%8)).Acquire(within(t))) },
		"TryAcquire": func(i int) error { return use(m.busy.Mutex(name("tried", i%8)).TryAcquire(within(t))) },
		"Ping":       func(int) error { return m.busy.Ping(within(t)) },
		"Healthy":    func(int) error { return m.busy.Healthy() },
		"kept":       func(i int) error { return use(m.keeper.Mutex(name("kept", i%4)).Acquire(within(t))) },
	} {
		callers.Go(func() {
			for i := 0; window.Err() == nil; i++ {
				from := time.Now()
				err := call(i)
				m.slowest.note(what, time.Since(from), err)
				select {
				case <-time.After(200 * time.Millisecond): // it paces the calls, and proves nothing
				case <-window.Done():
				}
			}
		})
	}
}

// succeed lets the locks go that the idle client waits for, some before it has left the server.
func (m *team) succeed(t *testing.T, callers *sync.WaitGroup) {
	for i := range m.behind {
		callers.Go(func() {
			<-time.After(time.Duration(i) * 600 * time.Millisecond)
			from := time.Now()
			err := m.ahead[i].Release(within(t))
			lock, failed := m.behind[i].result(t)
			m.slowest.note("wait", time.Since(from), cmp.Or(err, failed))
			if lock != nil {
				_ = lock.Release(within(t))
			}
		})
	}
}

// report counts what was lost, and checks that it is nothing.
func (m *team) report(t *testing.T, fault silence) {
	lost := 0
	for _, l := range m.held {
		if isDone(l) {
			lost++
		}
	}
	sessions := int(m.idle.Stats().SessionsLost + m.busy.Stats().SessionsLost + m.keeper.Stats().SessionsLost)
	t.Logf("%s: %d of %d locks and %d sessions lost; kept %d of 4; slowest: %v; sessions then: %v", m.name, lost, len(m.held), sessions, m.keeper.Stats().Kept, m.slowest, m.seats)
	m.runs, m.locks, m.lost, m.sessions = m.runs+1, m.locks+len(m.held), m.lost+lost, m.sessions+sessions
	if lost > 0 {
		m.losing++
	}
	m.stopwatch.add(m.slowest)
	if lasts := !fault.leader || m.timeout >= 30*time.Second; lasts && lost+sessions > 0 { // shorter leases end before the next leader
		t.Errorf("%s: %d locks and %d sessions lost, want none", m.name, lost, sessions)
	}
	if fault.calls && long.On() { // a machine that is busy with other tests takes seconds for each call
		m.slowest.check(t)
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

// count returns the number of sessions at a server.
func (s *seating) count(server *ensemble.Server) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, addr := range s.at {
		if addr == server.Addr() || addr == server.SecureAddr() {
			n++
		}
	}
	return n
}

// choose returns the leader, or the follower that has the most sessions.
func choose(e *ensemble.Ensemble, leader bool, teams []*team) (*ensemble.Server, error) {
	lead, err := e.Leader()
	if leader || err != nil {
		return lead, err
	}
	has := make(map[*ensemble.Server]int)
	for _, s := range e.Servers() {
		for _, m := range teams {
			has[s] += m.seats.count(s)
		}
	}
	delete(has, lead)
	return slices.MaxFunc(slices.Collect(maps.Keys(has)), func(a, b *ensemble.Server) int { return has[a] - has[b] }), nil
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

// add takes over what another one has noted.
func (s *stopwatch) add(o *stopwatch) {
	for what, took := range o.took {
		s.note(what, took, nil)
	}
	for what, n := range o.failed {
		s.failed[what] += n
		s.why[what] = o.why[what]
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
