//go:build unix

package run

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// Config is what Run needs.
type Config struct {
	Command Command
	Lease   Lease
	Timing  Timing
	Signals *Signals
	Log     func(format string, args ...any) // must not block
	LogNow  func(format string, args ...any) // likewise, and has written the line when it returns, if it can

	// Sessions are the files of the wrapper's sessions, whose locks go with them when the wrapper is
	// killed and the group is dead: see BeCloser. Run does not close them.
	Sessions []*os.File

	// Helpers were started before the lock was acquired. Run starts its own if it is nil, or they have died.
	Helpers *Helpers

	// Revoked is closed when an operator asks for the lock: the command gets TERM then, as if
	// the wrapper had got it. It may be nil.
	Revoked <-chan struct{}
}

// Result is the end of a command.
type Result struct {
	Status syscall.WaitStatus // of the command's first process
	Lost   bool               // the lock was lost, or TERM was sent for the lease, before the last process had ended
	Signal os.Signal          // came before the command was started, which therefore was not; else nil
	Ended  bool               // INT or TERM went to the command, or HUP, INT or QUIT has ended it
}

const (
	// look is how often the loop looks at the lease and the clock at least: a timer does not
	// run while the machine is suspended.
	look = 250 * time.Millisecond

	// Once the command has ended, the loop looks whether the group is empty, first after
	// firstPoll, and then less and less often, down to lastPoll.
	firstPoll = 5 * time.Millisecond
	lastPoll  = 100 * time.Millisecond
)

// Run starts the command, and returns when the command and all other processes of its group
// have ended, the guard among them. It returns an error if the command could not be started. It
// may be called again, but not at the same time.
func Run(c Config) (Result, error) {
	runtime.LockOSThread() // the command dies with the thread that has started it
	defer runtime.UnlockOSThread()
	r := &runner{Config: c, terminal: openTerminal()}
	g, err := newGroup(c.Helpers, c.Sessions, c.Log)
	if err != nil {
		return Result{}, err
	}
	// The start of the guard may have taken long. The command starts only if enough of the lease is
	// left now.
	if ready, sig := r.isReady(); !ready {
		g.close()
		return Result{Lost: sig == nil, Signal: sig}, nil
	}
	r.group = g
	r.stopper.catch()
	defer r.stopper.leave()
	r.terminal.give(g.id)
	c.Signals.pass()
	err = r.heedLeaseDuring(func() error { return g.start(c.Command) })
	// From here on the wrapper is in the background, where it may have something to report.
	signal.Ignore(syscall.SIGTTOU)
	if err != nil {
		g.close()
		r.terminal.take()
		return Result{}, err
	}
	r.loop()
	g.close()
	r.terminal.take()
	if r.status.Signaled() {
		r.terminal.restore()
	}
	return Result{Status: r.status, Lost: r.lost || !c.Lease.Valid(), Ended: r.ended || endedByKey(r.status)}, nil
}

// endedByKey reports whether a command was ended by a signal that a terminal sends. Such a signal goes
// to the command's group alone, which is in the foreground: the wrapper does not get it.
func endedByKey(status syscall.WaitStatus) bool {
	switch status.Signal() {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT:
		return true
	}
	return false
}

// runner is a command that runs. Only the goroutine of Run uses it.
type runner struct {
	Config
	group    *group
	terminal terminal
	status   syscall.WaitStatus

	lost   bool      // TERM or KILL was sent for the lease
	ended  bool      // INT or TERM came for the command
	asked  bool      // TERM was sent to the group
	killAt time.Time // when KILL follows; zero: not known yet

	stopper stopper
	warned  time.Time // when it was last logged that processes do not end
}

// isReady waits until so much of the lease is left that the command can start. It reports
// false if the lock was lost, or for a signal that ends the wait for the lock.
func (r *runner) isReady() (bool, os.Signal) {
	tick := time.NewTicker(firstPoll)
	defer tick.Stop()
	for {
		select {
		case sig := <-r.Signals.caught:
			if EndsWait(sig) {
				return false, sig
			}
			continue
		default:
		}
		if r.Timing.Ready(time.Until(r.Lease.Until())) {
			return true, nil
		}
		select {
		case <-tick.C:
		case <-r.Lease.Done():
			return false, nil
		}
	}
}

// heedLeaseDuring calls start, which starts the command. The kernel may take long to load a
// program. If the lease demands a KILL before the program is loaded, the group gets the KILL, and
// the program never runs.
func (r *runner) heedLeaseDuring(start func() error) error {
	halt, done := make(chan struct{}), make(chan struct{})
	killed := false
	go func() {
		defer close(done)
		for {
			demand, wait := r.Timing.demands(time.Until(r.Lease.Until()))
			if demand == kill {
				killed, wait = true, lastPoll // again and again: the process may join the group later
				_ = syscall.Kill(-r.group.id, syscall.SIGKILL)
			}
			timer := time.NewTimer(min(wait, look))
			select {
			case <-timer.C:
			case <-halt:
				timer.Stop()
				return
			}
		}
	}()
	err := start()
	close(halt)
	<-done
	if killed {
		r.killForLease()
	}
	return err
}

// loop does what the lease, the signals and the command's processes demand, until the last
// of these has ended.
func (r *runner) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	lost, revoked, poll := r.Lease.Done(), r.Revoked, firstPoll
	for {
		// First of all, also after the wrapper was stopped.
		wait := r.heedLease(time.Now())
		r.reap()
		if r.group.main == 0 {
			if r.group.isEmpty(func() { r.heedLease(time.Now()) }) {
				return
			}
			if r.group.launching == nil {
				r.sweep(time.Now()) // a TERM would end a guard that does not ignore it yet
			}
			wait, poll = min(wait, poll), min(2*poll, lastPoll)
		}
		timer.Reset(min(wait, look))
		select {
		case <-timer.C:
		case <-lost:
			lost = nil
		case <-revoked:
			revoked = nil
			r.group.toMain(syscall.SIGTERM)
		case <-r.Signals.children:
		case l := <-r.group.launching:
			r.reap() // the command may have died together with the guard before
			r.group.adopt(l)
		case l := <-r.group.closing:
			r.reap()
			r.group.adoptCloser(l)
		case sig := <-r.Signals.caught:
			r.ended = r.ended || sig == syscall.SIGINT || sig == syscall.SIGTERM
			r.group.toMain(sig.(syscall.Signal))
		case <-r.stopper.caught:
			r.suspend(os.Getpid())
		case <-r.Signals.continued:
			r.heedLease(time.Now())
			r.resume()
		}
		if r.stopper.hasFailed(time.Now()) {
			r.heedLease(time.Now())
			r.resume()
		}
	}
}

// heedLease sends the signals that the lease demands. It returns how long, at least, the lease
// demands nothing else.
//
// A TERM for the lease sets the time of KILL. That time stays even if the lease is proven for
// longer afterwards: at that time the command has had its grace.
func (r *runner) heedLease(now time.Time) time.Duration {
	left := time.Duration(0)
	if until := r.Lease.Until(); !until.IsZero() {
		left = until.Sub(now)
	}
	demand, wait := r.Timing.demands(left)
	switch {
	case demand == kill:
		r.killForLease()
		return lastPoll
	case demand == terminate && !r.lost:
		r.Log("the ensemble has not renewed the lease: the command gets TERM, and KILL in %v", wait.Truncate(time.Millisecond))
		r.lost = true
		r.ask(now.Add(wait))
	}
	if r.asked {
		if !now.Before(r.killAt) {
			r.group.kill()
			return lastPoll
		}
		return min(wait, r.killAt.Sub(now))
	}
	return wait
}

// killForLease kills the group because the lease ends.
func (r *runner) killForLease() {
	if !r.lost {
		r.Log("the lock is lost: the command is killed")
	}
	r.lost = true
	r.group.kill()
}

// ask sends TERM to the group, and sets the time of KILL. If an earlier time is set already, that
// one stays.
func (r *runner) ask(killAt time.Time) {
	if !r.asked || killAt.Before(r.killAt) {
		r.killAt = killAt
	}
	r.asked = true
	r.group.terminate()
}

// sweep ends the processes that the command has left behind.
func (r *runner) sweep(now time.Time) {
	if !r.asked {
		r.ask(now.Add(r.Timing.Grace))
	}
	const patience = 10 * time.Second
	if late := now.Sub(r.killAt); late > patience && now.Sub(r.warned) > patience {
		r.warned = now
		r.Log("processes of the command's groups %v do not end, %v after KILL: the lock stays held until they do", r.group.numbers(), late.Truncate(time.Second))
	}
}

// reap notes the changes of children that there are. If the wrapper is the first process of a
// container, its children include orphans. No other code of the process waits for a child while
// the loop runs.
func (r *runner) reap() {
	for {
		pid, status := r.group.changed()
		if pid == 0 {
			return
		}
		if r.group.note(pid, status) {
			r.noteMain(status)
		}
	}
}

// ExitCode returns the exit code that a shell reports for a status.
func ExitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// SignalCode returns the exit code of a process that a signal has ended.
func SignalCode(sig os.Signal) int { return 128 + int(sig.(syscall.Signal)) }
