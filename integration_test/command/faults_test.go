//go:build linux

package command_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// At most atATime runs of a fault go on at the same time. If each fault has more than fewRuns runs,
// no fault is left out.
const (
	fewRuns = 2
	atATime = 10
)

// runsOfEach returns the number of runs of each fault.
func runsOfEach(t *testing.T) int { return long.Count(t, "ZKLOCK_COMMAND_RUNS", 1, fewRuns) }

// fault is something that ends a first run, or its lock.
type fault struct {
	what   string
	traits string
	flags  []string
	code   int  // of the first run
	early  bool // the first run may end with 0, too: the fault may be over before it demands something
	// alone means that the first runs know one follower only.
	alone bool
	// strikes means that the fault strikes the servers, too.
	strikes bool
	// soak means that few runs leave the fault out, since another one is nearly the same.
	soak bool
	// long means that the fault is left out without ZKLOCK_LONG (package long).
	long bool
	// kept is how long the servers may be away without a loss: the first run then keeps its lock
	// and must end with exit code 0. After a longer absence it may end with 0 or with code. If kept
	// is 0, the fault has no such time.
	kept time.Duration
	// expires means that the sessions of the first runs expire, so these are short.
	expires bool
	inject  func(t *testing.T, s *scene)
}

// scene is what a fault acts on.
type scene struct {
	ensemble *ensemble.Ensemble
	follower *ensemble.Server
	pairs    []*pair
	away     time.Duration // how long the servers were away at most
}

// each does something with every pair.
func each(do func(t *testing.T, p *pair)) func(*testing.T, *scene) {
	return func(t *testing.T, s *scene) {
		for _, p := range s.pairs {
			do(t, p)
		}
	}
}

// toWrapper sends a signal to the wrappers of the first runs.
func toWrapper(sig syscall.Signal) func(*testing.T, *scene) {
	return each(func(t *testing.T, p *pair) { p.first.signal(t, sig) })
}

// toCommand sends a signal to the first processes of the first commands.
func toCommand(sig syscall.Signal) func(*testing.T, *scene) {
	return each(func(t *testing.T, p *pair) {
		if err := syscall.Kill(p.pids()[0].pid, sig); err != nil {
			t.Error(err)
		}
	})
}

// end lets the first processes of the first commands end by themselves.
var end = each(func(t *testing.T, p *pair) {
	if err := os.WriteFile(p.file+".end", nil, 0o666); err != nil {
		t.Error(err)
	}
})

// cutOff cuts the follower of the first runs off from the leader, until the test is over.
func cutOff(t *testing.T, s *scene) {
	if err := s.ensemble.CutFromLeader(s.follower); err != nil {
		t.Fatal(err)
	}
}

// outage takes all servers away and brings them back at a fixed time, whatever the first runs do.
// Then the servers serve the second runs at once.
func outage(lasts time.Duration, away, back func(*testing.T, *scene)) func(*testing.T, *scene) {
	return func(t *testing.T, s *scene) {
		began := time.Now()
		away(t, s)
		time.Sleep(lasts)
		back(t, s)
		s.away = time.Since(began)
		end(t, s) // those that still have the lock
	}
}

// freeze stops all servers, and thaw lets them go on.
func freeze(t *testing.T, s *scene) {
	for _, server := range s.ensemble.Servers() {
		if err := server.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
}

func thaw(t *testing.T, s *scene) {
	for _, server := range s.ensemble.Servers() {
		if err := server.Thaw(); err != nil {
			t.Fatal(err)
		}
	}
}

// kill kills all servers, and restart starts them again.
func kill(_ *testing.T, s *scene) {
	for _, server := range s.ensemble.Servers() {
		server.Kill()
	}
}

func restart(t *testing.T, s *scene) {
	for _, server := range s.ensemble.Servers() {
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ensemble.AwaitServing(); err != nil {
		t.Fatal(err)
	}
}

var faults = []fault{
	{what: "the command ends", inject: end},
	{what: "the command ends and leaves children", traits: parent, inject: end},
	{what: "the command ends and leaves children that ignore TERM", traits: parent + heirs, inject: end},
	{what: "the command is killed", code: 128 + 9, inject: toCommand(syscall.SIGKILL)},
	{what: "the command is killed and leaves children", traits: parent, code: 128 + 9, inject: toCommand(syscall.SIGKILL)},
	{what: "the shell of a command is killed", flags: []string{"--shell"}, code: 128 + 9, inject: each(func(t *testing.T, p *pair) {
		shell, err := strconv.Atoi(statOf(p.pids()[0].pid)[1]) // the parent of the program
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(shell, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})},
	{what: "the wrapper gets TERM", traits: parent, code: 128 + 15, inject: toWrapper(syscall.SIGTERM)},
	{what: "the wrapper gets INT", traits: parent, code: 128 + 2, inject: toWrapper(syscall.SIGINT)},
	{what: "the wrapper gets HUP", traits: parent, code: 128 + 1, inject: toWrapper(syscall.SIGHUP)},
	{what: "the wrapper is killed", traits: parent, code: -1, expires: true, inject: toWrapper(syscall.SIGKILL)},
	{what: "the wrapper of a command that ignores TERM is killed", traits: stubborn + parent + heirs, code: -1, expires: true, inject: toWrapper(syscall.SIGKILL)},
	{what: "the wrapper in shell mode is killed", long: true, flags: []string{"--shell"}, code: -1, expires: true, inject: toWrapper(syscall.SIGKILL)},
	{what: "the guard is killed, and then the wrapper", traits: parent, code: -1, expires: true, inject: killGuards},
	{what: "the closer is killed together with the wrapper", traits: stubborn + parent + heirs, code: -1, inject: killClosers},
	{what: "the follower is cut off from its leader", long: true, traits: parent, code: 76, alone: true, expires: true, strikes: true, inject: cutOff},
	{what: "the follower of a command that ignores TERM is cut off", traits: stubborn + parent + heirs, code: 76, alone: true, expires: true, strikes: true, inject: cutOff},
	{what: "the ensemble is frozen for half a session", long: true, traits: stubborn + parent, code: 76, early: true, expires: true, strikes: true, inject: outage(timeout/2, freeze, thaw)},
	{what: "the ensemble is frozen for a session", traits: stubborn + parent, code: 76, expires: true, strikes: true, inject: outage(timeout, freeze, thaw)},
	{what: "the ensemble is frozen for more than a session", long: true, traits: stubborn + parent + heirs, code: 76, expires: true, strikes: true, inject: outage(timeout*6/5, freeze, thaw)},
	// Servers need some seconds to start. So these sessions are long, and a session is soon over in the next row.
	{what: "the ensemble is down for less than a session", traits: parent, flags: []string{"--grace", "1s"}, code: 76, kept: longTimeout / 3, strikes: true, inject: outage(0, kill, restart)},
	{what: "the ensemble is down for a session", traits: stubborn + parent, code: 76, expires: true, strikes: true, soak: true, inject: outage(timeout, kill, restart)},
	{what: "the ensemble is down for more than a session", long: true, traits: stubborn + parent + heirs, code: 76, expires: true, strikes: true, inject: outage(timeout*6/5, kill, restart)},
	{what: "the wrapper is stopped for a moment", traits: parent, inject: stopForAMoment},
}

// killGuards kills the guards first, and the wrappers when there are new guards.
func killGuards(t *testing.T, s *scene) {
	for _, p := range s.pairs {
		old := guardOf(t, p)
		if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		eventually(t, "there is a new guard", func() bool { g := guardOf(t, p); return g != 0 && g != old })
		p.first.signal(t, syscall.SIGKILL)
	}
}

// killClosers kills the closers and the wrappers. A wrapper that is stopped starts no other closer.
func killClosers(t *testing.T, s *scene) {
	for _, p := range s.pairs {
		closer := childOf(p.first.cmd.Process.Pid, "lock-closer")
		if closer == 0 {
			t.Fatalf("%s: there is no closer", p.name)
		}
		p.first.signal(t, syscall.SIGSTOP)
		if err := syscall.Kill(closer, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		p.first.signal(t, syscall.SIGKILL)
	}
}

// childOf returns the child of a process whose first argument is a name; 0 if there is none.
func childOf(parent int, name string) int {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		args, _ := os.ReadFile(dir + "/cmdline")
		if stat := statOf(pid); len(stat) > 1 && stat[1] == strconv.Itoa(parent) && strings.HasPrefix(string(args), name+"\x00") {
			return pid
		}
	}
	return 0
}

// stopForAMoment stops the wrappers for a sixth of a session timeout. That loses no lock: more than
// half of the lease is left when it begins.
func stopForAMoment(t *testing.T, s *scene) {
	toWrapper(syscall.SIGSTOP)(t, s)
	time.Sleep(longTimeout / 6)
	toWrapper(syscall.SIGCONT)(t, s)
	time.Sleep(time.Second) // they look at the lease four times
	for _, p := range s.pairs {
		if n := p.alive(); n != p.processes {
			t.Errorf("%s: %d of %d processes are alive: %s", p.name, n, p.processes, p.first.stderr.String())
		}
	}
	end(t, s)
}

// TestCommandIsDeadBeforeTheNextStarts: whatever ends a run, a second run that waits for the
// lock starts its command when all processes of the first are dead.
func TestCommandIsDeadBeforeTheNextStarts(t *testing.T) {
	t.Parallel()
	e := ownServers(t)
	watch := observer(t, e)
	runs := runsOfEach(t)
	few := runs <= fewRuns
	for _, f := range faults {
		if f.soak && few || f.long && runs < fewRuns {
			continue
		}
		t.Run(f.what, func(t *testing.T) {
			if !f.strikes && few {
				t.Parallel() // these wait for sessions to expire; those that strike the servers come before
			}
			flags := f.flags
			if f.expires { // the shorter the grace, the later is the TERM
				flags = append(slices.Clone(flags), "--grace", "1s")
			}
			found := tally{codes: make(map[int]int)}
			for done := 0; done < runs; done += atATime {
				n := min(atATime, runs-done)
				f.run(t, e, &scene{ensemble: e}, &found, func(t *testing.T, s *scene, first, second string) {
					s.pairs = startPairs(t, n, watch, first, second, f.traits, flags...)
				})
			}
			t.Logf("%d runs, overlaps %d; the first runs ended with %v\n%v", found.runs, found.overlaps, found.codes, e.Settings(longTimeout, 2*atATime, newName(t)))
			if found.runs != runs {
				t.Errorf("%d runs were judged, want %d", found.runs, runs)
			}
		})
	}
}

// tally is what the runs of one fault were found to be.
type tally struct {
	runs, overlaps int
	codes          map[int]int // of the first runs, with their numbers
}

// run makes one batch of runs.
func (f *fault) run(t *testing.T, e *ensemble.Ensemble, s *scene, found *tally, begin func(t *testing.T, s *scene, first, second string)) {
	first, second := urlOf(e.Hosts()), urlOf(e.Hosts())
	if f.expires {
		first = quickURL(e.Hosts())
	}
	if f.alone {
		s.follower = e.Followers()[0]
		leader, err := e.Leader()
		if err != nil {
			t.Fatal(err)
		}
		first, second = quickURL(s.follower.Addr()), urlOf(leader.Addr())
		defer func() {
			e.Heal()
			if err := e.AwaitServing(); err != nil {
				t.Fatal(err)
			}
		}()
	}
	begin(t, s, first, second)
	f.inject(t, s)
	want, early := f.code, f.early
	switch {
	case s.away < f.kept:
		want = 0
	case f.kept > 0:
		early = true
	}
	for _, p := range s.pairs {
		code, overlaps := p.judge(want, early)
		found.runs++
		found.codes[code]++
		found.overlaps += min(overlaps, 1)
	}
}

// guardOf returns the process id of the guard of a first run; 0 if there is none.
func guardOf(t *testing.T, p *pair) int {
	t.Helper()
	group, err := strconv.Atoi(statOf(p.pids()[0].pid)[2])
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		name, _ := os.ReadFile("/proc/" + entry.Name() + "/comm")
		if stat := statOf(pid); len(stat) > 2 && stat[2] == strconv.Itoa(group) && stat[0] != "Z" && string(name) == "lock-guard\n" {
			return pid
		}
	}
	return 0
}
