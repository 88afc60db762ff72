package lease

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
	const jitter = 2 * time.Millisecond // the clocks are not read at one instant
	if d := readBootAhead() - bootAhead; d > jitter {
		return d
	}
	return 0
}

// readBootAhead reads boot-time minus monotonic. The order matters: a thread
// that is held up between the two readings gets the value of the earlier moment
// at worst, as if it had been held up right after the call, and never one that
// is too large.
func readBootAhead() time.Duration {
	boot := clockGettime(clockBoottime)
	return boot - clockGettime(clockMonotonic)
}

func clockGettime(id uintptr) time.Duration {
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
