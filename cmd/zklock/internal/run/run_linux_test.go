package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// short lets a command start as soon as there is a lease.
var short = Timing{Grace: 100 * ms, Margin: 100 * ms}

// sleeper opens the pipe in its first argument, and sleeps.
const sleeper = `exec 3>"$1"; exec sleep 30`

// stubborn opens the pipe in its first argument, and ignores TERM.
const stubborn = `trap "" TERM; exec 3>"$1"; sleep 90 & wait; wait`

// TestLeaseIsLookedAtAfterTheGuard: the guard takes so long to start that the lease ends. The
// command starts only when there is a lease again. If there is none, it never starts.
func TestLeaseIsLookedAtAfterTheGuard(t *testing.T) {
	for what, renewed := range map[string]bool{"the lease is renewed": true, "the lock is lost": false} {
		t.Run(what, func(t *testing.T) {
			slow := slowGuards(t)
			w := begin(t, short, shell("exit 7"))
			slow.await()
			w.lease.move(0)
			slow.release()
			eventually(t, "the wrapper looks at the lease", func() bool { return w.lease.looked() >= 3 || w.isOver() })
			if renewed {
				w.lease.move(time.Hour)
			} else {
				close(w.lease.done)
			}
			want := Result{Lost: true}
			if renewed {
				want = Result{Status: 7 << 8}
			}
			if got := w.end(); got != want || w.said.all() != "" {
				t.Errorf("%+v, want %+v; said %q", got, want, w.said.all())
			}
		})
	}
}

// TestLeaseEndsDuringTheStart: the kernel takes so long to load the command's program that the
// lease ends. The program never runs.
func TestLeaseEndsDuringTheStart(t *testing.T) {
	l, said := newLease(), messages{}
	g, err := newGroup(nil, nil, said.log)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	r := &runner{Config: Config{Lease: l, Timing: short, Log: said.log, LogNow: said.log}, group: g}
	l.move(0)
	if err := r.heedLeaseDuring(func() error {
		err := g.start(shell("sleep 5"))
		if err == nil {
			_, err = waitid(oneChild, g.main, syscall.WEXITED)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r.reap()
	if r.status.Signal() != syscall.SIGKILL || !r.lost || strings.Count(said.all(), "killed") != 1 {
		t.Errorf("ended with %v, lost %v, said %q; want KILL", r.status, r.lost, said.all())
	}
}

// TestChainOfForksIsNotMissed: each process of a chain forks the next one and ends, so that a look at
// the list of processes finds none of them. Run returns when the last one is dead.
func TestChainOfForksIsNotMissed(t *testing.T) {
	stop := filepath.Join(t.TempDir(), "stop")
	t.Cleanup(func() { _ = os.WriteFile(stop, nil, 0o666) }) // for a chain that was missed
	for range 3 {
		chain := newWitness(t)
		w := begin(t, Timing{Grace: 500 * ms, Margin: 100 * ms}, shell(`trap "" TERM; exec 3>"$1"
			next() { [ -e "$1" ] || next "$1" & }
			next "$2"`, chain.path, stop))
		w.end()
		if chain.alive() {
			t.Fatal("Run has returned, and the chain goes on")
		}
	}
}

// TestLeaseIsHeededWhileAGuardStarts: the guard was killed, the next one is slow to start, and the
// lock is lost. The command is killed at once.
func TestLeaseIsHeededWhileAGuardStarts(t *testing.T) {
	command := newWitness(t)
	w := begin(t, short, shell(sleeper, command.path))
	command.lives()
	slow := slowGuards(t)
	if err := syscall.Kill(w.guard(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	slow.await()
	w.lease.move(0)
	close(w.lease.done)
	command.dies() // before the guard works
	slow.release()
	if got := w.end(); !got.Lost || got.Status.Signal() != syscall.SIGKILL || w.said.all() != "the lock is lost: the command is killed" {
		t.Errorf("%+v, said %q; want KILL before the start of the guard is given up", got, w.said.all())
	}
}

// TestGuardIsReplaced: if a guard is killed, another one is started, and again if that one is
// killed. At the end no guard is left.
func TestGuardIsReplaced(t *testing.T) {
	command := newWitness(t)
	w := begin(t, short, shell(sleeper, command.path))
	command.lives()
	var old []int
	for n := range 3 {
		guard := w.guard(old...)
		if of, err := syscall.Getpgid(guard); err != nil || n > 0 && of != old[0] {
			t.Errorf("guard %d is in group %d, %v; want that of the first, %v", guard, of, err, old)
		}
		old = append(old, guard)
		if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the wrapper reports it", func() bool { return strings.Count(w.said.all(), "there is a new one") == n+1 })
	}
	close(w.revoked)
	if got := w.end(); got.Lost || got.Status.Signal() != syscall.SIGTERM || command.alive() {
		t.Errorf("%+v, want the end by TERM", got)
	}
}

// TestGuardThatDiesWithItsCommandIsNotReported: a command kills its whole group, and so its guard.
// The wrapper may learn of the guard's end first, and start another one. It prints no message about
// that.
func TestGuardThatDiesWithItsCommandIsNotReported(t *testing.T) {
	command := newWitness(t)
	w := begin(t, short, shell(`trap "kill -9 0" TERM; exec 3>"$1"; while :; do sleep 0.01; done`, command.path))
	command.lives()
	slow := slowGuards(t)
	close(w.revoked)
	eventually(t, "the command is dead", func() bool {
		return !slices.ContainsFunc(children(t), func(c child) bool { return c.name == "sh" && c.state != "Z" })
	})
	slow.release()
	if got := w.end(); got.Lost || got.Status.Signal() != syscall.SIGKILL || w.said.all() != "" {
		t.Errorf("%+v, said %q", got, w.said.all())
	}
}

// TestTERMComesBeforeKILL: a command that ends by TERM is not killed.
func TestTERMComesBeforeKILL(t *testing.T) {
	command := newWitness(t)
	w := begin(t, Timing{Grace: 20 * time.Second, Margin: 100 * ms}, shell(`trap "exit 3" TERM; exec 3>"$1"; while :; do sleep 0.01; done`, command.path))
	command.lives()
	w.lease.move(10 * time.Second)
	if got := w.end(); !got.Lost || got.Status.ExitStatus() != 3 {
		t.Errorf("%+v, want that the command ends by itself, with 3", got)
	}
}

// TestKILLComesBeforeTheEndOfTheLease: all processes of a command that ignores TERM are dead before
// the lease ends.
func TestKILLComesBeforeTheEndOfTheLease(t *testing.T) {
	command := newWitness(t)
	w := begin(t, Timing{Grace: 500 * ms, Margin: 5 * time.Second}, shell(stubborn, command.path))
	command.lives()
	until := w.lease.move(5200 * ms)
	command.dies()
	if late := time.Since(until); late > 0 {
		t.Errorf("the last process died %v after the end of the lease", late)
	}
	if got := w.end(); !got.Lost || got.Status.Signal() != syscall.SIGKILL {
		t.Errorf("%+v, want the end by KILL", got)
	}
}

// TestRunOutlivesTheGroup: Run does not return before processes that the command has left behind
// are dead.
func TestRunOutlivesTheGroup(t *testing.T) {
	left := newWitness(t)
	w := begin(t, short, shell(`trap "" TERM; exec 3>"$1"; sleep 5 & exit 4`, left.path))
	if got := w.end(); got.Lost || got.Status.ExitStatus() != 4 {
		t.Errorf("%+v, want 4", got)
	}
	if left.alive() {
		t.Error("Run has returned before the group was empty")
	}
}

// TestSignalsOfATerminalEndTheRun: a terminal sends HUP, INT and QUIT to the command, and not to the
// wrapper. Other signals that end the command do not end a candidacy.
func TestSignalsOfATerminalEndTheRun(t *testing.T) {
	for sig, ended := range map[syscall.Signal]bool{syscall.SIGHUP: true, syscall.SIGINT: true, syscall.SIGQUIT: true, syscall.SIGTERM: false, syscall.SIGUSR1: false, syscall.SIGKILL: false} {
		got := begin(t, short, shell(fmt.Sprintf("ulimit -c 0; kill -%d $$", sig))).end()
		if got.Ended != ended || got.Status.Signal() != sig {
			t.Errorf("%v: %+v, want that it ends the run: %v", sig, got, ended)
		}
	}
	if got := begin(t, short, shell("exit 1")).end(); got.Ended {
		t.Errorf("%+v, want that an exit does not end the run", got)
	}
}

// TestGuardKillsTheGroup: the wrapper is killed. All processes of its command die, those that ignore
// TERM, too.
func TestGuardKillsTheGroup(t *testing.T) {
	command := newWitness(t)
	wrapper := wrapper(t, stubborn, command.path)
	if err := wrapper.Start(); err != nil {
		t.Fatal(err)
	}
	command.lives()
	if err := wrapper.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = wrapper.Wait()
	command.dies()
}
