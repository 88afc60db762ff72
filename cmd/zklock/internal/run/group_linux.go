package run

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// executable returns this program's file, even if the file was replaced since the start.
func executable() (string, error) { return "/proc/self/exe", nil }

// descriptorFolder has the descriptors of this process.
const descriptorFolder = "/proc/self/fd"

// nameProcess sets the process's name, which is that of its first thread. The calling goroutine may
// be on another one.
func nameProcess(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }

// dieWithWrapper makes the kernel kill the command when the thread that starts it ends. This
// covers a command that has left its group, and the case that the guard was killed too.
func dieWithWrapper(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// guardedToTheEnd says that members can be distinguished from the guard, so that the guard can
// stay until the group is empty.
const guardedToTheEnd = true

// changed returns a child that has ended or was stopped; 0 if there is none. It collects the child,
// except for one that keeps the number of a group: a guard that has ended, and a first process that has
// ended and leads a group.
func (g *group) changed() (pid int, status syscall.WaitStatus) {
	for _, child := range g.watched() {
		pid, status, ended := peek(child)
		switch {
		case pid == 0:
		case ended && g.guard != nil && pid == g.guard.pid:
			return pid, status
		case ended && pid == g.main && leads(pid):
			g.led = pid
			return pid, status
		default:
			return collect(pid)
		}
	}
	return 0, 0
}

// watched returns the children whose changes are of interest; 0 means all. A child that has ended and is
// not collected hides the others if all are asked for. While there is one, orphans are not collected. There
// is none once endsWithItsGuard has collected the guard.
func (g *group) watched() (pids []int) {
	if g.guard == nil || g.led == 0 && !g.guard.ended {
		return []int{0}
	}
	if g.main != 0 {
		pids = append(pids, g.main)
	}
	if !g.guard.ended {
		pids = append(pids, g.guard.pid)
	}
	if g.closer != nil {
		pids = append(pids, g.closer.pid)
	}
	return pids
}

// leads reports whether a process that is not collected leads a process group.
func leads(pid int) bool {
	of, err := syscall.Getpgid(pid)
	return err == nil && of == pid
}

// childInfo is what waitid reports of a child, on all architectures of Linux: the number of a
// signal, 0 if there is no child; two numbers, in an order that depends on the architecture;
// and a union with the alignment of a pointer, which begins with the process id, the user's id, and the
// exit code or the number of a signal.
type childInfo struct {
	signal int32
	second int32
	third  int32
	_      [0]uintptr
	pid    int32
	_      int32
	result int32
	_      [104]byte // the kernel writes 128 bytes in all
}

// code says what has become of the child.
func (c *childInfo) code() int32 {
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		return c.second
	}
	return c.third
}

// status returns the status that Wait4 returns for a child that has ended, without the mark of a dump.
func (c *childInfo) status() syscall.WaitStatus {
	if c.code() == exited {
		return syscall.WaitStatus(c.result) << 8
	}
	return syscall.WaitStatus(c.result)
}

// The options of waitid, the same on all architectures, and two of its answers: for a child that has
// exited, and for one that has ended with a dump. No answer for an end is greater, and those for a
// stop are.
const (
	allChildren = 0
	oneChild    = 1
	exited      = 1
	dumped      = 3
)

// waitid reports a child that has changed its state: the child with that pid, or any. It does not
// collect the child.
func waitid(which, pid, options int) (info childInfo, err error) {
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, uintptr(which), uintptr(pid), uintptr(unsafe.Pointer(&info)), uintptr(options|syscall.WNOWAIT), 0, 0)
		switch errno {
		case 0:
			return info, nil
		case syscall.EINTR:
		default:
			return info, errno
		}
	}
}

// peek returns a child that has ended or was stopped; 0 if there is none. Its argument is the child's
// process id, or 0 for any child. The status is that of an end. peek collects nothing.
func peek(of int) (pid int, status syscall.WaitStatus, ended bool) {
	which := oneChild
	if of == 0 {
		which = allChildren
	}
	info, err := waitid(which, of, syscall.WEXITED|syscall.WSTOPPED|syscall.WNOHANG)
	if err != nil || info.signal == 0 {
		return 0, 0, false
	}
	return int(info.pid), info.status(), info.code() <= dumped
}

// members reports whether one of the process groups has a live process other than guard. It returns an
// error if it cannot find out.
func members(guard int, groups ...int) (bool, error) {
	// In a /proc of another namespace of process ids, the group has another number.
	if self, err := os.Readlink("/proc/self"); err != nil {
		return false, err
	} else if self != strconv.Itoa(os.Getpid()) {
		return false, fmt.Errorf("/proc is that of other process ids: this process is %s there", self)
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return false, err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return false, err
	}
	read := false
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		// One call finds the group of a process. Nearly all are in other groups, and to read a file of each takes ten calls.
		of, err := syscall.Getpgid(pid)
		if read = read || err == nil; err != nil || pid == guard || !slices.Contains(groups, of) {
			continue
		}
		state, of, ok := processState("/proc/" + name + "/stat")
		if ok && slices.Contains(groups, of) && (!isDead(state) || hasLiveThread(name)) {
			return true, nil
		}
	}
	if !read {
		return false, os.ErrNotExist // /proc is empty
	}
	return false, nil
}

// processState reads the state and the group of a process or thread. Its name, which is in
// parentheses, may have any characters.
func processState(path string) (state byte, group int, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 3 {
		return 0, 0, false
	}
	group, err = strconv.Atoi(string(fields[2]))
	return fields[0][0], group, err == nil
}

// isDead reports whether a process in that state has stopped executing for good.
func isDead(state byte) bool { return state == 'Z' || state == 'X' || state == 'x' }

// hasLiveThread reports whether a process whose first thread has ended has others.
func hasLiveThread(pid string) bool {
	dir := "/proc/" + pid + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, thread := range threads {
		if state, _, ok := processState(dir + "/" + thread.Name() + "/stat"); ok && !isDead(state) {
			return true
		}
	}
	return false
}

// IsUnder reports whether this process is in a group for whose end a wrapper waits: a guard leads it, or the command's
// first process does, and both are the wrapper's children.
func IsUnder(wrapper int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(syscall.Getpgrp()) + "/stat")
	if err != nil {
		return false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	return len(fields) > 1 && string(fields[1]) == strconv.Itoa(wrapper)
}
