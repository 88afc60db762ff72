package ensemble

import (
	"os/exec"
	"syscall"
)

// bindToParent has the kernel kill the process when its parent's thread ends.
func bindToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
