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

// bootAhead is how far the boot-time clock was ahead of the monotonic clock when the
// process started.
var bootAhead = readBootAhead()

// suspendGrowth returns how much the boot-time clock has gained on the monotonic clock
// since the process started. Only a suspension of the machine makes it gain.
func suspendGrowth() time.Duration {
	const jitter = 2 * time.Millisecond // the two clocks are not read at the same moment
	if d := readBootAhead() - bootAhead; d > jitter {
		return d
	}
	return 0
}

// readBootAhead reads the boot-time clock minus the monotonic clock. The order of the
// two readings matters. If the thread is held up between them, it gets at worst the
// value of the earlier moment, as if it had been held up right after the call. It never
// gets a value that is too large.
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
