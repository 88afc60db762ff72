//go:build linux

package command_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/integration_test/ensemble"
)

// runsEnv has the number of runs of each fault; without it there are fewRuns. At most
// atATime of them go on at the same time.
const (
	runsEnv = "ZKLOCK_COMMAND_RUNS"
	fewRuns = 3
	atATime = 10
)

func runsOfEach(t *testing.T) int {
	text := os.Getenv(runsEnv)
	if text == "" {
		return fewRuns
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number", runsEnv, text)
	}
	return n
}

// fault is something that ends a first run, or its lock.
type fault struct {
	what   string
	traits string
	flags  []string
	code   int // of the first run
	// alone means that the first runs know one follower only.
	alone  bool
	inject func(t *testing.T, s *scene)
}

// scene is what a fault acts on.
type scene struct {
	ensemble *ensemble.Ensemble
	follower *ensemble.Server
	pairs    []*pair
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

// freeze stops all servers for longer than a session timeout.
func freeze(t *testing.T, s *scene) {
	for _, server := range s.ensemble.Servers() {
		if err := server.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range s.pairs {
		p.first.code(t) // it ends without the servers
	}
	for _, server := range s.ensemble.Servers() {
		if err := server.Thaw(); err != nil {
			t.Fatal(err)
		}
	}
}

// down kills all servers, and starts them again after the end of the first runs.
func down(t *testing.T, s *scene) {
	for _, server := range s.ensemble.Servers() {
		server.Kill()
	}
	for _, p := range s.pairs {
		p.first.code(t)
	}
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
	{what: "the wrapper is killed", traits: parent, code: -1, inject: toWrapper(syscall.SIGKILL)},
	{what: "the wrapper of a command that ignores TERM is killed", traits: stubborn + parent + heirs, code: -1, inject: toWrapper(syscall.SIGKILL)},
	{what: "the wrapper in shell mode is killed", flags: []string{"--shell"}, code: -1, inject: toWrapper(syscall.SIGKILL)},
	{what: "the guard is killed, and then the wrapper", traits: parent, code: -1, inject: killGuards},
	{what: "the follower is cut off from its leader", traits: parent, code: 76, alone: true, inject: cutOff},
	{what: "the follower of a command that ignores TERM is cut off", traits: stubborn + parent + heirs, code: 76, alone: true, inject: cutOff},
	{what: "the ensemble is frozen", traits: stubborn + parent, code: 76, inject: freeze},
	{what: "the ensemble is down", traits: parent, code: 76, inject: down},
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

// stopForAMoment stops the wrappers for a third of a session timeout, which takes no lock.
func stopForAMoment(t *testing.T, s *scene) {
	toWrapper(syscall.SIGSTOP)(t, s)
	time.Sleep(timeout / 3)
	toWrapper(syscall.SIGCONT)(t, s)
	time.Sleep(timeout / 3)
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
	e := servers(t)
	watch := observer(t, e)
	for _, f := range faults {
		t.Run(f.what, func(t *testing.T) {
			runs := runsOfEach(t)
			for done := 0; done < runs; done += atATime {
				n := min(atATime, runs-done)
				f.run(t, e, &scene{ensemble: e}, n, func(t *testing.T, s *scene, first, second string) {
					s.pairs = startPairs(t, n, watch, first, second, f.traits, f.flags...)
				})
			}
			t.Logf("%d runs", runs)
		})
	}
}

// run makes one batch of runs.
func (f *fault) run(t *testing.T, e *ensemble.Ensemble, s *scene, n int, begin func(t *testing.T, s *scene, first, second string)) {
	first, second := urlOf(e.Hosts()), urlOf(e.Hosts())
	if f.alone {
		s.follower = e.Followers()[0]
		leader, err := e.Leader()
		if err != nil {
			t.Fatal(err)
		}
		first, second = urlOf(s.follower.Addr()), urlOf(leader.Addr())
		defer func() {
			e.Heal()
			if err := e.AwaitServing(); err != nil {
				t.Fatal(err)
			}
		}()
	}
	begin(t, s, first, second)
	f.inject(t, s)
	for _, p := range s.pairs {
		p.judge(f.code)
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
