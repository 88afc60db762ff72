package integration_test

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill cmd's process when the process of this test ends. Otherwise
// it would go on without a parent that ends it or searches its output. The kernel takes the thread
// that starts a process for its parent. So the goroutine that starts it must keep its thread.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
