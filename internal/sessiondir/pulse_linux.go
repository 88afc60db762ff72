package sessiondir

import (
	"context"
	"os"
	"syscall"
	"time"
)

// The pulse of a process that watches is the time of change of the FIFO. It works for whatever stops that process:
// a signal, a freezer, a debugger. A process that was replaced and lives does no harm: two that watch end no
// session twice, since each session has the flock of its file.
const (
	pulse = rest / 2 // how often one that watches shows a sign of life
	look  = rest     // how often the others look for one
)

// beat shows signs of life until ctx ends, or another FIFO has the name of f.
func (r *reaper) beat(ctx context.Context, f *os.File, name string) {
	for !r.dir.removed(f, name) {
		touch(f)
		if !sleep(ctx, pulse) {
			return
		}
	}
}

// touch sets the times of f to now.
func touch(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // of this user's own file, so it does not fail
		_, _, _ = syscall.Syscall6(syscall.SYS_UTIMENSAT, fd, 0, 0, 0, 0, 0)
	})
}

// signs are what a process has seen of the pulse of one that watches.
type signs struct {
	last  time.Time // the FIFO's own time
	since time.Time // when this process saw that first
	looks int       // since then
}

// gone reports whether there was no sign of life for a while, at several looks: this process may itself have
// been stopped between two of them.
func (s *signs) gone(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	if changed := info.ModTime(); !changed.Equal(s.last) {
		*s = signs{last: changed, since: time.Now()}
	}
	s.looks++
	return s.looks > int(rest/look) && time.Since(s.since) >= rest
}
