package run

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestPeekNamesTheChild: peek names a child that has stopped or ended, and does not collect it.
// Where the kernel puts the process id depends on the architecture.
func TestPeekNamesTheChild(t *testing.T) {
	if pid, _, _ := peek(0); pid != 0 {
		t.Fatalf("there is a child already: %d", pid)
	}
	sleeper := shell("exec sleep 30")
	child, err := syscall.ForkExec(sleeper.Path, sleeper.Args, &syscall.ProcAttr{Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sig   syscall.Signal
		ended bool
	}{{syscall.SIGSTOP, false}, {syscall.SIGKILL, true}} {
		if pid, _, ended := peek(0); pid != 0 || ended {
			t.Errorf("before %v: %d, %v; want none", c.sig, pid, ended)
		}
		if err := syscall.Kill(child, c.sig); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the signal works", func() bool { pid, _, _ := peek(0); return pid != 0 })
		said := syscall.WaitStatus(0)
		for _, of := range []int{0, child} {
			pid, status, ended := peek(of)
			if pid != child || ended != c.ended {
				t.Errorf("after %v: %d, %v; want %d, %v", c.sig, pid, ended, child, c.ended)
			}
			said = status
		}
		if pid, status := collect(child); pid != child || status.Stopped() == c.ended || c.ended && said != status {
			t.Errorf("after %v: collected %d, %#x; peek said %#x", c.sig, pid, status, said)
		}
	}
}

// TestGroupOfTheFirstProcessIsKilled: the command is the program timeout, which makes a group of
// its own, with a process that ignores TERM. That process is killed too.
func TestGroupOfTheFirstProcessIsKilled(t *testing.T) {
	command := newWitness(t)
	w := begin(t, short, shell(`exec timeout 60 sh -c "$2" sh "$1"`, command.path, stubborn))
	command.lives()
	w.lease.move(0)
	if got := w.end(); !got.Lost || got.Status.Signal() != syscall.SIGKILL {
		t.Errorf("%+v, want the end by KILL", got)
	}
	command.dies()
}

// TestRunOutlivesTheGroupOfTheFirstProcess: the program timeout ends, and leaves a process in the group
// that it has made. Run returns when that process is dead, too.
func TestRunOutlivesTheGroupOfTheFirstProcess(t *testing.T) {
	for what, end := range map[string]struct {
		script string
		status syscall.WaitStatus
	}{
		"by itself": {"exit 4", 4 << 8},
		"by KILL":   {"kill -9 $PPID", syscall.WaitStatus(syscall.SIGKILL)},
	} {
		t.Run(what, func(t *testing.T) {
			left := newWitness(t)
			w := begin(t, short, shell(`ulimit -c 0; exec timeout 60 sh -c "$2" sh "$1"`, left.path, `trap "" TERM; exec 3>"$1"; sleep 5 & `+end.script))
			if got := w.end(); got.Lost || got.Status != end.status {
				t.Errorf("%+v, want the status %#x", got, end.status)
			}
			if left.alive() {
				t.Error("Run has returned before the group of the first process was empty")
			}
		})
	}
}

// TestProcOfOtherProcessIDs: if a wrapper has its own namespace of process ids but the /proc of
// another namespace, it cannot see the processes of the group. A process that the command has left
// behind gets TERM before KILL nevertheless.
func TestProcOfOtherProcessIDs(t *testing.T) {
	const leaver = `sh -c 'trap "echo TERM >$1; exit" TERM; echo ready >"$1"; while :; do sleep 0.01; done' sh "$1" &
		until [ -s "$1" ]; do sleep 0.01; done`
	for what, script := range map[string]string{"in the group": leaver, "in the first process's group": `exec timeout 60 sh -c "$2" sh "$1"`} {
		t.Run(what, func(t *testing.T) {
			said := filepath.Join(t.TempDir(), "said")
			w := wrapper(t, script, said, leaver)
			w.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
				UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
			}
			switch err := w.Run(); {
			case errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL):
				t.Skipf("this system makes no namespace: %v", err)
			case err != nil:
				t.Fatal(err)
			}
			if text, err := os.ReadFile(said); err != nil || string(text) != "TERM\n" {
				t.Errorf("the process that was left behind said %q, %v; want that TERM has ended it", text, err)
			}
		})
	}
}

// TestKeptProcessHidesNoOther: the first process leads a group and has ended. It is not collected, and the
// wrapper notes that its guard or its closer is stopped or dead nevertheless.
func TestKeptProcessHidesNoOther(t *testing.T) {
	g, err := newGroup(nil, []*os.File{sessionFile(t)}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	if err := g.start(shell("exec timeout 60 true")); err != nil {
		t.Fatal(err)
	}
	first := g.main
	next := func() (pid int, status syscall.WaitStatus) {
		t.Helper()
		eventually(t, "a child has changed", func() bool { pid, status = g.changed(); return pid != 0 })
		g.note(pid, status)
		return pid, status
	}
	if pid, status := next(); pid != first || status != 0 || g.main != 0 || g.led != first {
		t.Fatalf("%d, %#x; main %d, led %d; want the end of %d, which led a group", pid, status, g.main, g.led, first)
	}
	for _, helper := range []int{g.closer.pid, g.guard.pid} {
		signalTo(t, helper, syscall.SIGSTOP)
		if pid, status := next(); pid != helper || !status.Stopped() {
			t.Errorf("%d, %#x; want that %d is stopped", pid, status, helper)
		}
		signalTo(t, helper, syscall.SIGKILL)
		if pid, _ := next(); pid != helper {
			t.Errorf("%d, want the end of %d", pid, helper)
		}
	}
	if pid, status := g.changed(); pid != 0 || g.closer != nil || !g.guard.ended {
		t.Errorf("%d, %#x; closer %v, guard %+v; want neither", pid, status, g.closer, g.guard)
	}
}

// ended is a group whose command has ended.
func ended(t *testing.T) *group {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	g, err := newGroup(nil, nil, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	if err := g.start(shell("exit 0")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command ends", func() bool {
		if pid, status := g.changed(); pid != 0 {
			g.note(pid, status)
		}
		return g.main == 0
	})
	return g
}

// TestGroupWithoutAGuardGetsNoSignal: nothing keeps the number of a group that has ended with its
// guard, so another group may have it.
func TestGroupWithoutAGuardGetsNoSignal(t *testing.T) {
	g := ended(t)
	eventually(t, "the guard ends", g.endsWithItsGuard)
	if g.guarded || g.guard != nil || !g.isEmpty(func() {}) {
		t.Errorf("%+v, want an empty group whose number is not used", g)
	}
}

// TestLeaseIsHeededBeforeEachLook: isEmpty heeds the lease before each of its three looks at
// the processes.
func TestLeaseIsHeededBeforeEachLook(t *testing.T) {
	g := ended(t)
	heeded := 0
	if !g.isEmpty(func() { heeded++ }) || heeded != 3 {
		t.Errorf("the lease was heeded %d times, want 3", heeded)
	}
}

// TestNextCommandInheritsNoIgnoredSignal: the wrapper ignores TTOU while a command runs. The next
// command that it starts does not inherit that. It ignores TTOU only if the wrapper ignored it from
// its own start on.
func TestNextCommandInheritsNoIgnoredSignal(t *testing.T) {
	status := filepath.Join(t.TempDir(), "status")
	for n := range 2 {
		if got := begin(t, short, shell(`cp /proc/$$/status "$1"`, status)).end(); got.Status != 0 {
			t.Fatalf("%+v", got)
		}
		text, err := os.ReadFile(status)
		if err != nil {
			t.Fatal(err)
		}
		_, mask, _ := strings.Cut(string(text), "\nSigIgn:\t")
		mask, _, _ = strings.Cut(mask, "\n")
		ignored, err := strconv.ParseUint(mask, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if has := ignored>>(syscall.SIGTTOU-1)&1 == 1; has != (signals().ttou == nil) {
			t.Errorf("command %d ignores %#x, so TTOU: %v", n, ignored, has)
		}
	}
}

// TestLookReadsNoFileOfOtherGroups: a look at the processes of the machine costs one call for each of them, and reads
// no file: those take ten calls, and memory.
func TestLookReadsNoFileOfOtherGroups(t *testing.T) {
	before, _ := filepath.Glob("/proc/[0-9]*")
	allocations := testing.AllocsPerRun(3, func() {
		if some, err := members(0, 1<<22+1); some || err != nil { // no process has this number
			t.Errorf("members: %v, %v", some, err)
		}
	})
	after, _ := filepath.Glob("/proc/[0-9]*")
	if most := 2*float64(max(len(before), len(after))) + 200; allocations > most {
		t.Errorf("%v allocations for %d processes, want %v at most", allocations, len(after), most)
	}
}
