package databases

import (
	"os"
	"os/exec"
	"syscall"
)

// unprivileged is the user that runs the servers if the tests run as root, because PostgreSQL
// refuses to run as root. Linux reserves the id for a user that owns no files.
const unprivileged = 65534

// giveAway makes a folder the servers' own.
func giveAway(folder string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(folder, unprivileged, unprivileged)
}

// restrict makes a command run without root's rights, and makes the kernel kill it when
// the thread that starts it ends.
func restrict(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: unprivileged, Gid: unprivileged}
	}
}
