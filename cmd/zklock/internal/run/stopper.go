//go:build unix

package run

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopTime is how long a wrapper that has asked to be stopped waits for that. If its group has no
// shell that could continue it, the kernel does not stop it.
const stopTime = 500 * time.Millisecond

// stopper catches TSTP, the signal of the key that stops a job, while there is a command. A
// stopped wrapper renews no lease, so it must stop the command first. The key's signal may not
// reach the command: if standard input is not a terminal, the command's group is not in the
// foreground.
type stopper struct {
	caught   chan os.Signal // nil if the wrapper was started to ignore TSTP
	works    disposition    // that of TSTP while it is caught; zero before it was first caught
	stopped  bool           // the command was stopped because the wrapper stops
	resumeAt time.Time      // when a wrapper goes on that could not be stopped; zero: it has not asked for that
}

// catch begins to catch TSTP. If the wrapper was started to ignore TSTP, catch does nothing. It may
// be called again.
func (s *stopper) catch() {
	if s.caught == nil {
		if signal.Ignored(syscall.SIGTSTP) {
			return
		}
		s.caught = make(chan os.Signal, 1)
	}
	signal.Notify(s.caught, syscall.SIGTSTP)
	if s.works != (disposition{}) {
		setDisposition(s.works)
	}
}

// leave lets TSTP stop the wrapper again.
func (s *stopper) leave() {
	if s.caught == nil {
		return
	}
	signal.Stop(s.caught)
	if was := setDisposition(disposition{}); was != (disposition{}) {
		s.works = was
	}
}

// hasFailed reports whether the wrapper has asked to be stopped and was not.
func (s *stopper) hasFailed(now time.Time) bool {
	return !s.resumeAt.IsZero() && now.After(s.resumeAt)
}

// noteMain notes a change of the command's first process.
func (r *runner) noteMain(status syscall.WaitStatus) {
	if !status.Stopped() {
		r.status = status
		return
	}
	sig := status.StopSignal()
	if !r.terminal.is || sig == syscall.SIGSTOP {
		return
	}
	if sig != syscall.SIGTSTP && r.terminal.foreground() {
		r.resume() // the command wants the terminal, which the shell has just given to the wrapper
		return
	}
	r.suspend(0) // the whole job, as the key demands
}

// suspend stops the command and then the wrapper. pid is the wrapper's process id, or 0 to stop all
// of the wrapper's group. A shell gets the terminal back. All processes of the command are stopped,
// also those that ignore TSTP: they must not run while the wrapper does not look at the lease.
func (r *runner) suspend(pid int) {
	r.group.stop()
	if until := r.Lease.Until(); !until.IsZero() {
		r.LogNow("stopped: the lock goes to others from %s on, and a command that goes on after that is killed", until.Add(-r.Timing.Margin).Format(time.TimeOnly))
	}
	r.terminal.take()
	r.stopper.leave()
	r.stopper.stopped, r.stopper.resumeAt = true, time.Now().Add(stopTime)
	_ = syscall.Kill(pid, stopSignal)
}

// resume lets a command go on that the terminal or the wrapper has stopped. The caller has looked at
// the lease.
func (r *runner) resume() {
	stopped := r.stopper.stopped
	r.stopper.stopped, r.stopper.resumeAt = false, time.Time{}
	r.stopper.catch() // before the command goes on
	r.terminal.give(r.group.id)
	if stopped || r.terminal.is {
		r.group.signal(syscall.SIGCONT)
	}
}
