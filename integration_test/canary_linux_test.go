package integration_test

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill a process when this one ends. After that its output
// could not be searched, and no other process would end it. The kernel takes the thread that
// starts a process for its parent. So the goroutine that starts it must keep its thread.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
