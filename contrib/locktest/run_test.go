package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest"
	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
	"github.com/zklock/go-zklock/contrib/locktest/servers"
	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

// roleEnv makes the test binary a server or a worker of the toy, and bugEnv gives the worker a bug.
const (
	roleEnv = "LOCKTEST_TOY_ROLE"
	bugEnv  = "LOCKTEST_TOY_BUG"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "server":
		fmt.Fprintln(os.Stderr, runToyServer())
		os.Exit(1)
	case "worker":
		worker.Main(func(ctx context.Context, s worker.Settings) (worker.Library, error) {
			l, err := openToy(ctx, s)
			if bug := os.Getenv(bugEnv); bug != "" && err == nil {
				l.(*toyClient).victims = map[string]int{findsDeadlocks: 1, failsOthers: 1, failsAll: 9}[bug]
				l.(*toyClient).extra = map[string]int{extraPermit: 1}[bug]
				l = &buggy{Library: l, bug: bug}
			}
			return l, err
		})
	case "silent":
		os.Exit(0)
	default:
		os.Exit(m.Run())
	}
}

// lines has the progress of a run in the test's log.
type lines struct{ t *testing.T }

func (l lines) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// The TTL of runs with faults, and that of runs in which no session ends, however busy the machine is.
const (
	short = 400 * time.Millisecond
	long  = time.Minute
)

// toy is a run of the toy with one server.
func toy(t *testing.T, bug string, ttl time.Duration) locktest.Config {
	t.Helper()
	ports, err := servers.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
	ensemble, err := servers.Run([]servers.Command{{
		Path: os.Args[0], Args: []string{addr, filepath.Join(t.TempDir(), "ran")},
		Env:  []string{roleEnv + "=server", worker.TTLEnv + "=" + ttl.String()},
		Addr: addr, Leads: func(context.Context, string) (bool, error) { return true, nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ensemble.Close() })
	return locktest.Config{
		Worker: []string{os.Args[0]}, Env: []string{roleEnv + "=worker", bugEnv + "=" + bug},
		Ensemble: ensemble, TTL: ttl, Hold: 2 * time.Millisecond, Think: time.Millisecond, Seed: 7,
		Grants: 150, Limit: time.Minute, Settle: time.Minute, Stderr: os.Stderr, Progress: lines{t},
	}
}

// judged runs a configuration and asks both judges, which must agree.
func judged(t *testing.T, c locktest.Config) (judge.Figures, []history.Event) {
	t.Helper()
	events, err := locktest.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	f := judge.Measure(events)
	o, known := judge.Porcupine(judge.Holds(events), time.Minute)
	if !known || !o.Agrees(f.Verdict) {
		t.Errorf("porcupine says %+v (known: %v), and the plain check %+v", o, known, f.Verdict)
	}
	t.Log("\n" + f.Table("toy"))
	return f, events
}

// notForToy are the faults that a single server and a worker in Go cannot have, and one that needs a tracer.
var notForToy = map[fault.Kind]bool{fault.CutFollower: true, fault.JumpClient: true, fault.JumpServer: true, fault.SlowDisk: true}

// TestRunOfARightLibrary: with each fault, the toy passes. After a kill, a lock has its next grant.
func TestRunOfARightLibrary(t *testing.T) {
	t.Parallel()
	c := toy(t, "", short)
	c.LongHolds, c.Hold, c.Recover = 50, 10*time.Millisecond, time.Minute
	idle := 0
	c.Idle = func(context.Context) error { idle++; return nil }
	const own = fault.Kind("a fault of the caller")
	c.Own = map[fault.Kind]func(context.Context) error{own: func(context.Context) error { return nil }}
	kinds := slices.DeleteFunc(slices.Clone(fault.Kinds), func(k fault.Kind) bool { return notForToy[k] })
	kinds = append(kinds, own)
	for i, k := range kinds {
		f := fault.Fault{Kind: k, After: c.TTL / 4, Lasts: 3 * c.TTL / 2, Victim: i % 3}
		if k.OfServer() {
			f.Victim = 0
		}
		c.Faults = append(c.Faults, f)
	}
	f, events := judged(t, c)
	if !f.Passed() || f.Grants < c.Grants || f.Faults != len(kinds) || f.Kills != 1 {
		t.Errorf("%+v, want nothing wrong, %d grants and %d faults", f, c.Grants, len(kinds))
	}
	recovered := 0
	for _, e := range events {
		if e.Kind == history.Recovered {
			recovered++
		}
	}
	if recovered != len(kinds) || idle != 1 {
		t.Errorf("the clients have recovered %d times from %d faults, and were idle %d times", recovered, len(kinds), idle)
	}
	for _, k := range []history.Kind{history.Read, history.Write, history.Held, history.Released, history.Calm} {
		if !slices.ContainsFunc(events, func(e history.Event) bool { return e.Kind == k }) {
			t.Errorf("the history has no event %s", k)
		}
	}
	last := events[len(events)-1]
	if last.Kind != history.Settled {
		t.Errorf("the history ends with %+v", last)
	}
}

// shared are locks that several clients have together.
var shared = []locktest.Lock{{Name: "a"}, {Name: "a", Shared: true}, {Name: "a", Shared: true}, {Name: "p", Permits: 2}, {Name: "p", Permits: 2}}

// TestRunOfADroppedRoute: while the only server's route drops everything, no client gets more than what was under way to it, and the
// connections stay open: the clients go on with the same ones.
func TestRunOfADroppedRoute(t *testing.T) {
	t.Parallel()
	c := toy(t, "", long)
	const clients = 6
	c.Faults = []fault.Fault{{Kind: fault.DropRoute, After: time.Second, Lasts: time.Second}}
	f, events := judged(t, c)
	if !f.Passed() || f.Faults != 1 || f.Losses > 0 {
		t.Errorf("%+v, want nothing wrong", f)
	}
	grants, during := 0, false
	for _, e := range events {
		switch {
		case e.Kind == history.Fault, e.Kind == history.Healed:
			during = e.Kind == history.Fault
		case during && e.Kind == history.Granted:
			grants++
		}
	}
	if grants > clients {
		t.Errorf("%d grants while the server was out of reach, want %d at most", grants, clients)
	}
}

// TestRunOfSharedLocks: readers and permits of the toy pass, and are held together.
func TestRunOfSharedLocks(t *testing.T) {
	t.Parallel()
	c := toy(t, "", long)
	c.Locks, c.Clients = shared, 4
	f, events := judged(t, c)
	if !f.Passed() || f.Refused != 0 || f.Lost != 0 {
		t.Errorf("%+v, want nothing wrong", f)
	}
	together, sure := make(map[string]bool), make(map[string]int64)
	for _, h := range judge.Holds(events) {
		together[h.Name] = together[h.Name] || h.Granted < sure[h.Name]
		sure[h.Name] = max(sure[h.Name], h.Sure)
	}
	if !together["a"] || !together["p"] {
		t.Errorf("no two holds were together, only those of %v", together)
	}
}

// TestRunFindsBugs: each deliberate bug of a worker makes its figure greater than 0.
func TestRunFindsBugs(t *testing.T) {
	t.Parallel()
	stop := fault.Fault{Kind: fault.StopClient, After: time.Millisecond, Lasts: time.Second}
	for _, b := range []struct {
		bug    string
		faults []fault.Fault
		figure func(judge.Figures) int
	}{
		{doubleGrant, nil, func(f judge.Figures) int { return f.Overlaps }},
		{excludesNever, nil, func(f judge.Figures) int { return min(f.Overlaps, f.Lost) }},
		{fallingToken, nil, func(f judge.Figures) int { return f.Fell }},
		{lateLoss, []fault.Fault{stop, stop, stop}, func(f judge.Figures) int { return f.Overlaps }},
		{lostRelease, nil, func(f judge.Figures) int { return len(f.Stuck) }},
		{crash, nil, func(f judge.Figures) int { return f.Crashes }},
		{secretReader, nil, func(f judge.Figures) int { return f.Overlaps }},
		{extraPermit, nil, func(f judge.Figures) int { return f.Overlaps }},
	} {
		t.Run(b.bug, func(t *testing.T) {
			t.Parallel()
			ttl := long
			if b.faults != nil || b.bug == crash { // sessions end
				ttl = short
			}
			c := toy(t, b.bug, ttl)
			c.Faults, c.Names = b.faults, []string{"a"}
			switch b.bug {
			case secretReader:
				c.Locks = shared
			case extraPermit:
				c.Locks = []locktest.Lock{{Name: "p", Permits: 2}}
			case lostRelease: // the name is stuck from the fifth grant on
				c.Workers, c.Clients, c.Grants, c.Settle = 1, 1, 5, time.Second
			case crash:
				c.Grants = 20
			case lateLoss: // the fault begins during work, not during a release or between two
				c.Workers, c.Clients, c.Hold, c.Grants = 2, 1, 50*time.Millisecond, 20
			}
			f, _ := judged(t, c)
			if b.figure(f) == 0 || f.Passed() {
				t.Errorf("the bug was not found: %+v", f)
			}
		})
	}
}

// TestRunNeedsRecovery: a run is an error if a client has no lock after a fault, or if the workers leave something behind.
func TestRunNeedsRecovery(t *testing.T) {
	t.Parallel()
	c := toy(t, lostRelease, long)
	c.Names, c.Recover = []string{"a"}, time.Second
	c.Faults = slices.Repeat([]fault.Fault{{Kind: fault.Blink}}, 50) // the name is stuck before the clients have had it so often
	if _, err := locktest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "has had no lock") {
		t.Errorf("clients without a lock: %v", err)
	}
	c = toy(t, "", long)
	left := errors.New("a node is left")
	c.Idle = func(context.Context) error { return left }
	if _, err := locktest.Run(t.Context(), c); !errors.Is(err, left) {
		t.Errorf("something is left: %v", err)
	}
}

// TestRunWithAStuckName: when new clients do not get a name, Stuck is called once, and the workers print where they are. The history
// was taken before: it has no end of a worker that SIGQUIT has ended, and so shows which acquisition keeps the name.
func TestRunWithAStuckName(t *testing.T) {
	t.Parallel()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	calls := 0
	c := toy(t, lostRelease, long)
	c.Workers, c.Clients, c.Names, c.Grants, c.Settle = 1, 1, []string{"a"}, 5, 2*time.Second // the fifth release is lost
	c.Stderr, c.Stuck = stderr, func() { calls++ }
	f, _ := judged(t, c)
	if len(f.Stuck) != 1 || len(f.Leftovers) == 0 || calls != 1 {
		t.Errorf("stuck: %q, kept by %v; Stuck was called %d times, want one stuck name, something that keeps it, and one call", f.Stuck, f.Leftovers, calls)
	}
	said, err := os.ReadFile(stderr.Name())
	if n := strings.Count(string(said), "SIGQUIT: quit"); err != nil || n != 2 {
		t.Errorf("%d processes have printed their goroutines, %v, want the worker and the new one", n, err)
	}
	c = toy(t, "", long)
	c.Grants, c.Stuck = 10, func() { t.Error("Stuck was called, though no name is stuck") }
	judged(t, c)
}

// TestRunWithLateWrites: a write that was held up loses an update of the plain register, though the lock
// excluded. The fenced register refuses it, unless the library has no tokens.
func TestRunWithLateWrites(t *testing.T) {
	t.Parallel()
	for _, library := range []string{"", noTokens} {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			c := toy(t, library, short)
			c.Workers, c.Clients, c.Names, c.Grants, c.Direct = 2, 1, []string{"a"}, 20, true
			late := fault.Fault{Kind: fault.StopWrite, After: time.Millisecond, Lasts: time.Second}
			c.Faults = []fault.Fault{late, late}
			f, _ := judged(t, c)
			if f.Lost == 0 || f.Overlaps != 0 {
				t.Errorf("%d lost updates and %d overlaps, want some of the first only", f.Lost, f.Overlaps)
			}
			if tokens := library == ""; (f.FencedLost == 0) != tokens || f.Passed() != tokens {
				t.Errorf("after fencing: %d lost updates, passed: %v", f.FencedLost, f.Passed())
			}
		})
	}
}

// TestRunWithAClockThatJumps: the fault can be made in a run, and the toy, which counts time by a clock that does not jump,
// passes. Package fault tests that the clock of such a process jumps.
func TestRunWithAClockThatJumps(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("it needs a C compiler")
	}
	c := toy(t, "", long)
	c.Worker = []string{"sh", "-c", `exec "$0"`, os.Args[0]}
	c.Faults = []fault.Fault{{Kind: fault.JumpClient, Lasts: 10 * time.Millisecond}}
	if f, _ := judged(t, c); !f.Passed() || f.Faults != 1 {
		t.Errorf("%+v, want nothing wrong, and a fault", f)
	}
}

// TestRunOfTwoWorkers: the processes run two commands in turn, which exclude each other. The processes that probe run the
// first one.
func TestRunOfTwoWorkers(t *testing.T) {
	t.Parallel()
	c := toy(t, "", long)
	c.Others = [][]string{{os.Args[0], "second"}}
	f, events := judged(t, c)
	if !f.Passed() || f.Grants < c.Grants {
		t.Errorf("%+v, want nothing wrong and %d grants", f, c.Grants)
	}
	var started []string
	for _, e := range events {
		if e.Kind == history.Start {
			started = append(started, strings.TrimPrefix(e.Reason, os.Args[0]))
		}
	}
	if slices.Sort(started); !slices.Equal(started, []string{"", "", "", " second"}) {
		t.Errorf("the processes ran %q", started)
	}
}

// untraced are servers whose fsync nothing can delay.
type untraced struct {
	servers.Ensemble
	ended int // how often the delay was ended
}

func (u *untraced) Slow(_ int, by time.Duration) error {
	if by > 0 {
		return errors.New("not permitted")
	}
	u.ended++
	return nil
}

// TestRunNeedsATracer: a delay of fsync that cannot be made ends the run at once.
func TestRunNeedsATracer(t *testing.T) {
	t.Parallel()
	c := toy(t, "", long)
	u := &untraced{Ensemble: c.Ensemble}
	c.Ensemble, c.Faults = u, []fault.Fault{{Kind: fault.SlowDisk, Lasts: time.Hour}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := locktest.Run(ctx, c); err == nil || !strings.Contains(err.Error(), "not permitted") || ctx.Err() != nil || u.ended != 1 {
		t.Errorf("%v, %v, %d ends, want an error before the end of the fault, and an end", err, ctx.Err(), u.ended)
	}
}

// TestRunNeedsAWorker: a worker that is not there, or ends, is an error of the run.
func TestRunNeedsAWorker(t *testing.T) {
	t.Parallel()
	c := toy(t, "", short)
	c.Env = []string{roleEnv + "=silent"}
	if _, err := locktest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "ended before it was ready") {
		t.Errorf("a worker that ends: %v", err)
	}
	c.Worker = []string{filepath.Join(t.TempDir(), "missing")}
	if _, err := locktest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a worker that does not exist: %v", err)
	}
	c.Faults = []fault.Fault{{Kind: fault.KillServer, Victim: 1}}
	if _, err := locktest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "victim 1 of 1") {
		t.Errorf("a fault of a second server: %v", err)
	}
	c.Worker, c.Faults = []string{os.Args[0]}, []fault.Fault{{Kind: fault.JumpClient}}
	if _, err := locktest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "in Go") {
		t.Errorf("a clock of a worker in Go: %v", err)
	}
	c.Direct, c.Faults = true, []fault.Fault{{Kind: fault.CutClient}}
	if _, err := locktest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "needs proxies") {
		t.Errorf("a cut without proxies: %v", err)
	}
	c.Faults, c.Others = nil, [][]string{nil}
	if _, err := locktest.Run(t.Context(), c); err == nil {
		t.Error("a second worker without a command")
	}
	if _, err := locktest.Run(t.Context(), locktest.Config{}); err == nil {
		t.Error("a run without a worker")
	}
}
