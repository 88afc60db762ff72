package run

import (
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

// stopSignal is the signal that the wrapper sends to itself to stop. The wrapper does not catch
// TSTP at that moment.
const stopSignal = syscall.SIGTSTP

// disposition is what a signal does to this process, in the form of the kernel, which depends on
// the architecture and is shorter. The zero disposition is the default on all of them.
type disposition [16]uint64

// setDisposition sets what TSTP does to this process, and returns what it did before. signal.Stop
// alone is not enough: it leaves the handler of package signal in place, and TSTP would then do
// nothing. If the kernel refuses, the wrapper does not stop, and goes on.
func setDisposition(d disposition) (was disposition) {
	set := uintptr(8) // the size of a set of signals
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		set = 16
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGTSTP), uintptr(unsafe.Pointer(&d)), uintptr(unsafe.Pointer(&was)), set, 0, 0)
	return was
}
