//go:build unix

package run

import (
	"cmp"
	"fmt"
	"syscall"
	"time"
)

const (
	// launchPause is the time from the end of a guard to the start of the next one. What has ended
	// the guard may be ending the command, too: then there is nothing left to guard.
	launchPause = 20 * time.Millisecond

	// maxFailures limits how often in a row the start of a guard is tried. A TERM for the group
	// ends a guard that does not ignore it yet.
	maxFailures = 3
)

// launched is the outcome of the start of another guard or closer.
type launched struct {
	guard *guard // may be there together with an error: see startGuard
	err   error
}

// launch begins to start another guard. The loop must not wait for the start: the lease may end
// during it. The loop ends only after it has received the outcome, and calls adopt with it.
func (g *group) launch() {
	outcome := make(chan launched, 1)
	g.launching = outcome
	id, files := g.id, g.files
	go func() {
		time.Sleep(launchPause)
		gd, err := startGuard(id, files)
		outcome <- launched{gd, err}
	}()
}

// adopt makes the guard that was launched the group's.
func (g *group) adopt(l launched) {
	g.launching = nil
	gd, err := g.accept(l)
	if gd != nil {
		if g.guard != nil {
			isGone(g.guard.pid) // it is now: the new guard keeps the group's number
		}
		g.guard, g.failures = gd, 0
		if g.main != 0 {
			g.log("the guard process was killed: there is a new one")
		}
		return
	}
	if g.doomed {
		return
	}
	if g.failures++; g.failures < maxFailures {
		g.launch()
		return
	}
	g.log("the guard process was killed, and cannot be replaced: a command whose wrapper is killed stays: %v", err)
}

// accept returns the guard or the closer that was launched if it works and the group needs it. Else it
// ends the process.
func (g *group) accept(l launched) (*guard, error) {
	gd, err := l.guard, l.err
	if gd != nil && isGone(gd.pid) {
		_ = gd.alive.Close()
		return nil, cmp.Or(err, fmt.Errorf("the %s has ended", gd.what))
	}
	if gd != nil && (err != nil || g.doomed) {
		gd.end()
		g.surplus = append(g.surplus, gd)
		gd = nil
	}
	return gd, err
}

// isGone reports whether a child has ended and is collected. It collects the child if it has ended.
func isGone(pid int) bool {
	for {
		switch got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return true
		default:
			return got == pid
		}
	}
}

// collect returns a child that has ended or was stopped, and collects it. Its argument is the
// child's process id, or -1 for any child. collect returns 0 if it finds none.
func collect(of int) (pid int, status syscall.WaitStatus) {
	for {
		pid, err := syscall.Wait4(of, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		if err != syscall.EINTR {
			return max(pid, 0), status
		}
	}
}
