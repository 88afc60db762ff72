package run

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// executable returns this program's file, even if the file was replaced since the start.
func executable() (string, error) { return "/proc/self/exe", nil }

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
// except for a guard that has ended, which keeps the group's number. Once the guard has ended,
// changed returns the command's first process only. Orphans that have ended are collected when the
// group has another guard.
func (g *group) changed() (pid int, status syscall.WaitStatus) {
	if g.guard != nil && g.guard.ended {
		if g.main == 0 {
			return 0, 0
		}
		return collect(g.main)
	}
	pid, ended := peek()
	if pid == 0 || g.guard != nil && pid == g.guard.pid && ended {
		return pid, 0
	}
	return collect(pid)
}

// childInfo is what waitid reports of a child, on all architectures of Linux: the number of a
// signal, 0 if there is no child; two numbers, in an order that depends on the architecture;
// and a union with the alignment of a pointer, which begins with the process id.
type childInfo struct {
	signal int32
	second int32
	third  int32
	_      [0]uintptr
	pid    int32
	_      [112]byte // the kernel writes 128 bytes in all
}

// code says what has become of the child.
func (c *childInfo) code() int32 {
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		return c.second
	}
	return c.third
}

// The options of waitid, the same on all architectures, and its answer for a child that has
// ended with a dump. The answers for other ends are smaller, and those for a stop greater.
const (
	allChildren = 0
	oneChild    = 1
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

// peek returns a child that has ended or was stopped; 0 if there is none. It collects nothing.
func peek() (pid int, ended bool) {
	info, err := waitid(allChildren, 0, syscall.WEXITED|syscall.WSTOPPED|syscall.WNOHANG)
	if err != nil || info.signal == 0 {
		return 0, false
	}
	return int(info.pid), info.code() <= dumped
}

// members reports whether a process group has a live process other than guard. It returns an
// error if it cannot find out.
func members(group, guard int) (bool, error) {
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
		state, of, ok := processState("/proc/" + name + "/stat")
		read = read || ok
		if ok && of == group && pid != guard && (!isDead(state) || hasLiveThread(name)) {
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
