//go:build unix

package run

import (
	"fmt"
	"os"
	"syscall"
)

// group is the command with its process group. The group's number is the process id of its
// guard, which leads it: so the kernel gives the number to no other group while the guard
// exists.
type group struct {
	id      int
	guard   *guard // nil once it has ended
	main    int    // the command's first process; 0 once it has ended
	doomed  bool   // KILL was sent: the guard dies with the group
	log     func(format string, args ...any)
	guarded bool // a guard can still be added: the group's number is still the group's
}

// startGroup starts a guard, and the command in the guard's group. before is called in
// between, with the group's number. The calling goroutine must be locked to its thread until
// the command has ended.
func startGroup(c Command, log func(string, ...any), before func(group int)) (*group, error) {
	gd, err := startGuard(0)
	if err != nil {
		return nil, err
	}
	before(gd.pid)
	attr := &syscall.SysProcAttr{Setpgid: true, Pgid: gd.pid}
	dieWithWrapper(attr)
	pid, err := syscall.ForkExec(c.Path, c.Args, &syscall.ProcAttr{Env: c.Env, Files: []uintptr{0, 1, 2}, Sys: attr})
	if err != nil {
		gd.reap()
		return nil, startError(c.Path, err)
	}
	return &group{id: gd.pid, guard: gd, main: pid, log: log, guarded: true}, nil
}

// end ends a guard. Its group must be empty, except for the guard.
func (g *guard) end() {
	_ = syscall.Kill(g.pid, syscall.SIGKILL)
	_ = g.alive.Close()
}

// reap ends a guard and waits for its end. The loop must not run, because it waits for children
// too.
func (g *guard) reap() {
	g.end()
	for {
		if _, err := syscall.Wait4(g.pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
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

// signal sends a signal to all processes of the group, and to the command's first process
// if that has left the group.
func (g *group) signal(sig syscall.Signal) {
	if g.guarded {
		_ = syscall.Kill(-g.id, sig)
	}
	if g.main == 0 {
		return
	}
	if of, err := syscall.Getpgid(g.main); err != nil || of != g.id {
		_ = syscall.Kill(g.main, sig)
	}
}

// toMain sends a signal to the command's first process alone.
func (g *group) toMain(sig syscall.Signal) {
	if g.main != 0 {
		_ = syscall.Kill(g.main, sig)
	}
}

// isEmpty reports whether all processes of the group have ended, except for the guard, and
// the command's first process, too.
func (g *group) isEmpty() bool {
	if g.main != 0 {
		return false
	}
	if !g.guarded {
		return true
	}
	if !guardedToTheEnd && g.guard != nil {
		g.doomed = true // it must not be replaced
		g.guard.end()
		return false // its end is reported later
	}
	guard := 0
	if g.guard != nil {
		guard = g.guard.pid
	}
	some, err := members(g.id, guard)
	if err != nil {
		// Without /proc, the kernel counts the guard as a member, too.
		if g.guard != nil {
			g.doomed = true
			g.guard.end()
			return false
		}
		return syscall.Kill(-g.id, 0) == syscall.ESRCH
	}
	return !some
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
		_ = g.guard.alive.Close()
		g.guard = nil
		if some, err := members(g.id, 0); g.main == 0 && err == nil && !some {
			g.guarded = false // the kernel may give the group's number to another group
		} else if !g.doomed {
			g.replaceGuard()
		}
	}
	return false
}

// isGuard reports whether a child is the guard.
func (g *group) isGuard(pid int) bool { return g.guard != nil && g.guard.pid == pid }

// replaceGuard adds a guard to a group whose guard was killed from outside.
func (g *group) replaceGuard() {
	gd, err := startGuard(g.id)
	if err == nil {
		g.guard = gd
		g.log("the guard process was killed: there is a new one")
		return
	}
	// Without members the kernel may give the group's number to another group.
	if some, errMembers := members(g.id, 0); errMembers == nil && !some {
		g.guarded = false
		return
	}
	g.log("the guard process was killed, and cannot be replaced: a command whose wrapper is killed stays: %v", err)
}

// close ends the guard of a group that is empty.
func (g *group) close() {
	if g.guard != nil {
		g.doomed = true
		g.guard.reap()
		g.guard = nil
	}
}

// Command is a command to run.
type Command struct {
	Path string
	Args []string // the name of the command first
	Env  []string
}

// Environment returns this process's environment with the names and paths of the locks, in
// the order given, and their token. They replace those of an outer run.
func Environment(names, paths, token string) []string {
	set := map[string]string{"ZKLOCK_NAME": names, "ZKLOCK_PATH": paths, "ZKLOCK_TOKEN": token}
	var env []string
	for _, pair := range os.Environ() {
		name := pair
		for i := range pair {
			if pair[i] == '=' && i > 0 {
				name = pair[:i]
				break
			}
		}
		if _, replaced := set[name]; !replaced {
			env = append(env, pair)
		}
	}
	for _, name := range []string{"ZKLOCK_NAME", "ZKLOCK_PATH", "ZKLOCK_TOKEN"} {
		env = append(env, fmt.Sprintf("%s=%s", name, set[name]))
	}
	return env
}
