package ensemble

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// bindToParent makes the kernel kill the process when the thread that starts it ends.
func bindToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether every thread of a process has stopped. SIGSTOP is asynchronous:
// kill returns while threads that run on other processors still go on.
func stopped(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false, fmt.Errorf("process %d does not exist: %w", pid, os.ErrProcessDone)
	}
	for _, name := range threads {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		// The format is "tid (command) state ..."; the command may contain any characters.
		_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
		if !bytes.HasPrefix(state, []byte("T")) && !bytes.HasPrefix(state, []byte("Z")) {
			return false, nil
		}
	}
	return true, nil
}
