package integration_test

import (
	"os/exec"
	"syscall"
)

// endWithParent has a process killed when this one is: it could not be searched
// any more, and nobody else would end it. The goroutine that starts it keeps its
// thread, which is what the kernel takes for the parent.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
