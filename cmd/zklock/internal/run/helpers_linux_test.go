package run

import (
	"os"
	"slices"
	"syscall"
	"testing"
)

// TestHelpersAreThereBeforeTheLock: the guard and the closer that were started before the lock was acquired are those of the
// command, and have the files of its sessions. Run starts no other ones.
func TestHelpersAreThereBeforeTheLock(t *testing.T) {
	h := StartHelpers(true)
	<-h.started
	gd, closer := h.guard, h.closer
	session := sessionFile(t)
	g, err := newGroup(h, []*os.File{session}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	if g.guard != gd || g.closer != closer || g.id != gd.pid {
		t.Errorf("guard %v, closer %v of group %d; want %v and %v", g.guard, g.closer, g.id, gd, closer)
	}
	_ = session.Close() // the helpers, or the sockets to them, have it
	if !isLocked(t, session) {
		t.Error("the session's file is free while the helpers live")
	}
	h.End()
	if pid, _ := g.changed(); pid != 0 {
		t.Errorf("%d has ended, with helpers that are the command's", pid)
	}
}

// TestHelpersThatDieAreReplaced: a guard or a closer that is killed before the lock is acquired is not the command's, and
// neither is the other one.
func TestHelpersThatDieAreReplaced(t *testing.T) {
	for _, what := range []string{guardName, closerName} {
		t.Run(what, func(t *testing.T) {
			h := StartHelpers(true)
			<-h.started
			old := []int{h.guard.pid, h.closer.pid}
			dead := h.guard
			if what == closerName {
				dead = h.closer
			}
			signalTo(t, dead.pid, syscall.SIGKILL)
			if _, err := waitid(oneChild, dead.pid, syscall.WEXITED); err != nil {
				t.Fatal(err)
			}
			g, err := newGroup(h, []*os.File{sessionFile(t)}, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(g.close)
			if slices.Contains(old, g.guard.pid) || slices.Contains(old, g.closer.pid) {
				t.Errorf("guard %d, closer %d; want none of %v", g.guard.pid, g.closer.pid, old)
			}
			for _, pid := range old {
				if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
					t.Errorf("%d is left: %v", pid, err)
				}
			}
		})
	}
}

// TestHelpersEnd: helpers whose lock was not acquired end, and so do those of a process that is killed.
func TestHelpersEnd(t *testing.T) {
	h := StartHelpers(true)
	<-h.started
	pids := []int{h.guard.pid, h.closer.pid}
	h.End()
	h.End()
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("%d is left: %v", pid, err)
		}
	}
	none := (*Helpers)(nil)
	none.End()

	h = StartHelpers(true)
	<-h.started
	for _, gd := range []*guard{h.guard, h.closer} {
		_ = gd.alive.Close() // as the kernel does it for a process that is killed
		if _, err := waitid(oneChild, gd.pid, syscall.WEXITED); err != nil {
			t.Errorf("the %s: %v", gd.what, err)
		}
	}
	h.End()
}
