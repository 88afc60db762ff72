package run

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// executable returns this program's file, even if the file was replaced since the start.
func executable() (string, error) { return "/proc/self/exe", nil }

// nameProcess sets the process's name.
func nameProcess(name string) {
	if text, err := unix.BytePtrFromString(name); err == nil {
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(text)), 0, 0, 0)
	}
}

// dieWithWrapper makes the kernel kill the command when the thread that starts it ends. This
// covers a command that has left its group, and the case that the guard was killed too.
func dieWithWrapper(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// guardedToTheEnd says that members can be distinguished from the guard, so that the guard can
// stay until the group is empty.
const guardedToTheEnd = true

// members reports whether a process group has a live process other than guard. It returns an
// error if it cannot find out.
func members(group, guard int) (bool, error) {
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

// isDead reports whether a process in that state executes nothing any more.
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
