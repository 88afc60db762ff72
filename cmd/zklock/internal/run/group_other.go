//go:build unix && !linux

package run

import (
	"errors"
	"os"
	"syscall"
)

// executable returns this program's file.
func executable() (string, error) { return os.Executable() }

// descriptorFolder has the descriptors of this process. Some systems list only the first three.
const descriptorFolder = "/dev/fd"

// nameProcess does nothing: these systems name a process after its file.
func nameProcess(string) {}

// dieWithWrapper does nothing: these systems cannot do it.
func dieWithWrapper(*syscall.SysProcAttr) {}

// guardedToTheEnd says that the guard has to end before the wrapper can see whether its group
// is empty: the system does not say which processes a group has.
const guardedToTheEnd = false

// changed returns a child that has ended or was stopped, and collects it; 0 if there is none.
func (g *group) changed() (pid int, status syscall.WaitStatus) { return collect(-1) }

// members reports whether the first of the process groups has a process. The guard must have ended.
func members(_ int, groups ...int) (bool, error) {
	return !errors.Is(syscall.Kill(-groups[0], 0), syscall.ESRCH), nil
}

// IsUnder returns false: the system does not say whose child the leader of a group is.
func IsUnder(int) bool { return false }
