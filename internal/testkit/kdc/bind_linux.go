package kdc

import (
	"os/exec"
	"syscall"
)

// bindToParent makes the kernel kill the process when the thread that starts it ends.
func bindToParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
