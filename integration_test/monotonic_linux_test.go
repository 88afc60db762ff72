package integration_test

import (
	"syscall"
	"unsafe"
)

// monotonic reads a clock that all processes of this machine share, and that is never set,
// in nanoseconds.
func monotonic() int64 {
	const clockMonotonic = 1
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(errno)
	}
	return ts.Nano()
}
