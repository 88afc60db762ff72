//go:build unix

package run

import (
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// closerName is the first argument of a closer, and the name of its process.
const closerName = "lock-closer"

// IsCloser reports whether this process was started to be a closer. Then it must call BeCloser and
// nothing else.
func IsCloser() bool { return len(os.Args) == 2 && os.Args[0] == closerName }

// BeCloser calls AwaitDeath and then end, with the files of the wrapper's sessions, and ends this process. Until then this
// process has the files open, so that no other process ends the sessions. It does not return.
func BeCloser(end func(files []*os.File)) {
	AwaitDeath()
	end(inherited)
	os.Exit(0)
}

var (
	died      sync.Once  // of the wrapper and its command
	inherited []*os.File // of the wrapper's sessions
)

// AwaitDeath waits, in a closer, until the wrapper has ended, and then until the command's group is empty.
func AwaitDeath() { died.Do(func() { inherited = awaitDeath() }) }

func awaitDeath() (files []*os.File) {
	group, err := strconv.Atoi(os.Args[1])
	if err != nil || group < 0 || group == 1 {
		os.Exit(1) // a person has started it
	}
	beHelper(closerName)
	files = awaitWrapper()
	// The guard does the same, if it lives. Since the group gets KILL before the look, one look is
	// enough: see isEmpty.
	if group != noGroup {
		_ = syscall.Kill(-group, syscall.SIGKILL)
		for pause := time.Millisecond; !isDeserted(group); pause = min(2*pause, lastPoll) {
			time.Sleep(pause)
		}
	}
	return files
}

// noGroup is the group of a closer whose command is dead.
const noGroup = 0

// heir is the closer of Bequeath. The socket to it must not be closed before the end of this process.
var heir *guard

// Bequeath starts a process that ends the sessions of files once this process has ended, for at most a session
// timeout. The command is dead, so that no other process needs to end first. Without files, or if it fails, the
// sessions expire.
func Bequeath(files []*os.File) {
	if len(files) > 0 && heir == nil {
		var err error
		if heir, err = forkCloser(noGroup); err == nil {
			_ = heir.give(files)
		}
	}
}

// isDeserted reports whether a group that has got KILL has no live process any longer.
func isDeserted(group int) bool {
	some, err := members(0, group)
	if err != nil {
		return syscall.Kill(-group, 0) == syscall.ESRCH
	}
	return !some
}

// forkCloser starts a closer, outside of the command's group.
func forkCloser(group int) (*guard, error) {
	return fork("closer", []string{closerName, strconv.Itoa(group)}, 0)
}

// closeOthers returns the descriptors of a process with an entry for each other descriptor of this one,
// that closes it in the process. The wrapper may have been started with open files. They are for its
// command, and the process may outlive that. Files at the limit of descriptors, or above, stay open:
// ForkExec needs free descriptors above those that it closes.
func closeOthers(descriptors []uintptr) []uintptr {
	var limit syscall.Rlimit
	_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	end := int(min(uint64(limit.Cur), 1<<20)) - len(descriptors) - 3
	entries, _ := os.ReadDir(descriptorFolder) // without it they stay open
	for _, entry := range entries {
		fd, _ := strconv.Atoi(entry.Name())
		for len(descriptors) <= fd && fd < end {
			descriptors = append(descriptors, ^uintptr(0))
		}
	}
	return descriptors
}

// noteCloser records the end of the closer. If it was killed from outside, another one is started, as
// launch does it.
func (g *group) noteCloser() {
	_ = g.closer.alive.Close()
	g.closer = nil
	if g.doomed {
		return
	}
	outcome := make(chan launched, 1)
	g.closing = outcome
	id, files := g.id, g.files
	go func() {
		time.Sleep(launchPause)
		c, err := forkCloser(id)
		if err == nil {
			err = c.employ(files)
		}
		outcome <- launched{c, err}
	}()
}

// adoptCloser makes the closer that was launched the group's.
func (g *group) adoptCloser(l launched) {
	g.closing = nil
	var err error
	switch g.closer, err = g.accept(l); {
	case g.closer != nil:
		g.log("the closer process was killed: there is a new one")
	case !g.doomed:
		g.log("the closer process was killed, and cannot be replaced: %v", err)
	}
}
