package zklock

import (
	"syscall"
	"time"
	"unsafe"
)

// Clock ids of clock_gettime(2).
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// bootAhead is how far the boot-time clock was ahead of the monotonic one when
// the process started.
var bootAhead = readBootAhead()

// suspendGrowth returns how much the boot-time clock has gained on the
// monotonic clock since the process started. Only suspension makes it gain.
func suspendGrowth() time.Duration {
	const jitter = time.Millisecond // the two readings are not simultaneous
	if d := readBootAhead() - bootAhead; d > 2*jitter {
		return d
	}
	return 0
}

// readBootAhead reads boot-time minus monotonic. The monotonic reading lies
// between two boot-time readings; when those are far apart, the thread was
// held up in between (maybe by a suspension), and it reads again. The earlier
// boot-time reading counts: too small a value at worst, and suspended keeps
// the largest.
func readBootAhead() time.Duration {
	var ahead time.Duration
	for range 100 {
		b1 := clockGettime(clockBoottime)
		m := clockGettime(clockMonotonic)
		b2 := clockGettime(clockBoottime)
		ahead = b1 - m
		if b2-b1 < time.Millisecond {
			break
		}
	}
	return ahead
}

func clockGettime(id uintptr) time.Duration {
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
