//go:build unix

package run

import (
	"os"
	"slices"
	"strings"
	"syscall"
)

// group is the command with its process group. The group's number is the process id of its
// first guard. While the group has a guard that is not collected, the kernel gives the number
// to no other group, even if that guard has ended.
type group struct {
	id        int
	guard     *guard          // on systems other than Linux, nil once it has ended
	launching <-chan launched // of the guard that is being started; nil if none is
	failures  int             // of starts of guards, since the last one that succeeded
	closer    *guard          // nil if there are no files, or it has ended
	closing   <-chan launched // of the closer that is being started; nil if none is
	files     []*os.File      // of the sessions that the closer ends if the wrapper dies
	surplus   []*guard        // guards and closers that got KILL, and are not collected
	main      int             // the command's first process; 0 once it has ended
	led       int             // the group that the first process led at its end; 0 if none. It is not collected, as the guard
	doomed    bool            // KILL was sent: the guard dies with the group
	guarded   bool            // the group's number is still the group's
	log       func(format string, args ...any)
}

// newGroup returns a group with a guard that works, and a closer if there are files: those of h, or new ones. It may take as
// long as guardStart: the lease is looked at afterwards. It does not wait until the closer works, since
// the files are open in the socket to it.
func newGroup(h *Helpers, files []*os.File, log func(string, ...any)) (*group, error) {
	if g, err := h.group(files, log); err == nil {
		return g, nil
	}
	return StartHelpers(len(files) > 0).group(files, log) // there were none, or a guard has died while it waited
}

// start starts the command in the group. The calling goroutine must be locked to its thread until
// the command has ended.
func (g *group) start(c Command) error {
	attr := &syscall.SysProcAttr{Setpgid: true, Pgid: g.id}
	dieWithWrapper(attr)
	pid, err := execute(c.Path, c.Args, &syscall.ProcAttr{Env: c.Env, Files: []uintptr{0, 1, 2}, Sys: attr})
	if err != nil {
		return startError(c.Path, err)
	}
	g.main = pid
	return nil
}

// terminate asks all processes of the group to end. They cannot do so while they are stopped.
func (g *group) terminate() {
	g.signal(syscall.SIGTERM)
	g.signal(syscall.SIGCONT)
}

// kill kills all processes of the group. It may be called again.
func (g *group) kill() {
	g.doomed = true
	g.signal(syscall.SIGKILL)
}

// stop stops all processes of the group but the guard.
func (g *group) stop() {
	g.signal(syscall.SIGSTOP)
	if g.guard != nil && !g.guard.ended {
		_ = syscall.Kill(g.guard.pid, syscall.SIGCONT) // the wrapper may be killed before the command goes on
	}
}

// numbers returns the number of the group, and that of the one that the first process led.
func (g *group) numbers() []int {
	if g.led == 0 {
		return []int{g.id}
	}
	return []int{g.id, g.led}
}

// signal sends a signal to all processes of the group, and to the command's first process if that
// has left the group. If the first process leads a group of its own, as coreutils timeout does,
// that group gets the signal, even after the end of the first process. Its number is the process id of
// the first process. No other process gets this id before the first process is collected.
func (g *group) signal(sig syscall.Signal) {
	if g.guarded {
		_ = syscall.Kill(-g.id, sig)
	}
	if g.led != 0 {
		_ = syscall.Kill(-g.led, sig)
	}
	if g.main == 0 {
		return
	}
	switch of, err := syscall.Getpgid(g.main); {
	case err == nil && of == g.id:
	case err == nil && of == g.main:
		_ = syscall.Kill(-g.main, sig)
	default:
		_ = syscall.Kill(g.main, sig)
	}
}

// toMain sends a signal to the command's first process alone.
func (g *group) toMain(sig syscall.Signal) {
	if g.main != 0 {
		_ = syscall.Kill(g.main, sig)
	}
}

// isEmpty reports whether the command's first process and all other processes of the group, and of the
// one that the first process led, have ended. The guard may still live. The group gets KILL before
// isEmpty reports true. A look at the processes of a busy machine takes long, so isEmpty calls heed
// before each look.
//
// One look can miss a process: it lists the processes, and then reads the state of each. If a
// process is forked after the list was made, and its parent ends before the parent's state is read,
// the look finds neither. The kernel sends KILL to all processes of a group at once, and a process
// that has got KILL forks no other one. So after a KILL one look is enough. Before the KILL there
// are two looks, since a process that the first look has missed should get TERM before KILL.
func (g *group) isEmpty(heed func()) bool {
	if g.main != 0 || g.launching != nil {
		return false
	}
	if !g.guarded && g.led == 0 {
		return true
	}
	if !guardedToTheEnd {
		return g.endsWithItsGuard()
	}
	for range 2 {
		if heed(); g.doomed {
			break
		}
		if some, err := g.members(); err != nil {
			return g.endsWithItsGuard()
		} else if some {
			return false
		}
	}
	if heed(); !g.doomed {
		g.kill()
	}
	some, err := g.members()
	if err != nil {
		return g.endsWithItsGuard()
	}
	return !some
}

// members reports whether the group, or the one that the first process led, has a live process other
// than the guard.
func (g *group) members() (bool, error) {
	guard := 0
	if g.guard != nil {
		guard = g.guard.pid
	}
	return members(guard, g.numbers()...)
}

// endsWithItsGuard is isEmpty on a system that does not say which processes a group has: the guard, and
// a first process that is not collected, have to go first.
func (g *group) endsWithItsGuard() bool {
	if g.guard != nil {
		g.doomed = true // it must not be replaced
		g.guard.end()
		if !isGone(g.guard.pid) {
			return false
		}
		g.guard = nil
		if g.led != 0 {
			isGone(g.led)
		}
	}
	// No process keeps the number of a group that is empty.
	if syscall.Kill(-g.id, 0) == syscall.ESRCH {
		g.guarded = false
	}
	if g.led != 0 && syscall.Kill(-g.led, 0) == syscall.ESRCH {
		g.led = 0
	}
	return !g.guarded && g.led == 0
}

// note records a change of a child. It reports whether the change is one of the command's
// first process.
func (g *group) note(pid int, status syscall.WaitStatus) bool {
	switch {
	case pid == g.main:
		if !status.Stopped() {
			g.main = 0
		}
		return true
	case g.guard != nil && pid == g.guard.pid:
		if status.Stopped() {
			_ = syscall.Kill(pid, syscall.SIGCONT) // only the command stops
			return false
		}
		g.noteGuard()
	case g.closer != nil && pid == g.closer.pid:
		if status.Stopped() {
			_ = syscall.Kill(pid, syscall.SIGCONT)
			return false
		}
		g.noteCloser()
	default:
		g.surplus = slices.DeleteFunc(g.surplus, func(gd *guard) bool { return gd.pid == pid })
	}
	return false
}

// noteGuard records the end of the guard. If it was killed from outside, another one is started.
func (g *group) noteGuard() {
	_ = g.guard.alive.Close()
	g.guard.ended = true
	if !guardedToTheEnd {
		g.guard = nil // it was collected
	}
	if some, err := g.members(); g.main == 0 && err == nil && !some {
		g.guarded = guardedToTheEnd // the kernel may give the number of a guard that was collected to another group
		return
	}
	if !g.doomed {
		g.launch()
	}
}

// close ends and collects the guards and the closer of a group that is empty, and collects the first
// process.
func (g *group) close() {
	g.doomed = true
	if g.led != 0 {
		isGone(g.led)
	}
	if g.closing != nil {
		g.adoptCloser(<-g.closing)
	}
	for _, gd := range []*guard{g.guard, g.closer} {
		if gd != nil {
			g.surplus = append(g.surplus, gd)
		}
	}
	g.guard, g.closer = nil, nil
	for _, gd := range g.surplus {
		gd.reap()
	}
	g.surplus = nil
}

// Command is a command to run.
type Command struct {
	Path string
	Args []string // the name of the command first
	Env  []string
}

// Environment returns this process's environment with the variables of a run in place of those of an outer
// one. A variable that is empty is left out.
func Environment(set Variables) []string {
	ours := []string{"ZKLOCK_NAME=" + set.Names, "ZKLOCK_PATH=" + set.Paths, "ZKLOCK_TOKEN=" + set.Token, "ZKLOCK_SLOT=" + set.Slot, "ZKLOCK_HELD=" + set.Held}
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return slices.ContainsFunc(ours, func(our string) bool {
			name, _, _ := strings.Cut(our, "=")
			return strings.HasPrefix(pair, name+"=")
		})
	})
	return append(env, slices.DeleteFunc(ours, func(our string) bool { return strings.Index(our, "=") == len(our)-1 })...)
}

// Variables are what a command learns of its locks.
type Variables struct {
	Names, Paths string // one a line, in the order given
	Token        string
	Slot         string // that the command runs for; "" if it runs for none
	Held         string // what is held, for the runs that the command starts
}
