//go:build unix

package run

import (
	"errors"
	"os"
	"runtime"
)

// Helpers are a guard and a closer that have no files yet. The kernel and the runtime need some milliseconds to start a
// process, and the lock can be acquired meanwhile. If this process dies, they end.
type Helpers struct {
	started chan struct{} // closed when the fields below are final, but for take
	guard   *guard
	closer  *guard
	err     error
}

// StartHelpers begins to start a guard, in a group of its own, and a closer if there will be files. Run takes them by
// [Config.Helpers], or End ends them.
func StartHelpers(closer bool) *Helpers {
	// The start of a process keeps a processor until the kernel has loaded the program.
	if runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
	}
	h := &Helpers{started: make(chan struct{})}
	go func() {
		defer close(h.started)
		if h.guard, h.err = forkGuard(0); h.err == nil && closer {
			h.closer, h.err = forkCloser(h.guard.pid)
		}
	}()
	return h
}

// End ends the helpers, unless Run has taken them. It may be called again, but not at the same time. h may be nil.
func (h *Helpers) End() {
	gd, closer, _ := h.take()
	for _, gd := range []*guard{closer, gd} {
		if gd != nil {
			gd.reap()
		}
	}
}

var errNoHelpers = errors.New("no guard was started")

// take returns the helpers, once.
func (h *Helpers) take() (gd, closer *guard, err error) {
	if h == nil {
		return nil, nil, errNoHelpers
	}
	<-h.started
	gd, closer, err = h.guard, h.closer, h.err
	h.guard, h.closer, h.err = nil, nil, errNoHelpers
	return gd, closer, err
}

// group makes the guard that of a group, with a closer if there are files.
func (h *Helpers) group(files []*os.File, log func(string, ...any)) (*group, error) {
	gd, closer, err := h.take()
	if gd == nil {
		return nil, err
	}
	g := &group{id: gd.pid, guard: gd, closer: closer, guarded: true, files: files, log: log}
	switch {
	case err != nil:
	case len(files) == 0 && closer != nil:
		closer.reap()
		g.closer = nil
	case len(files) > 0:
		if closer == nil {
			g.closer, err = forkCloser(g.id)
		}
		if err == nil {
			err = g.closer.give(files)
		}
	}
	if err == nil {
		err = gd.employ(files)
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}
