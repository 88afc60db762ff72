package child

import (
	"debug/buildinfo"
	"os/exec"
)

// IsGo reports whether a program is written in Go. Such a program asks the kernel for the time, and not the C
// library, so it cannot have a clock of its own.
func IsGo(program string) bool {
	path, err := exec.LookPath(program)
	if err != nil {
		return false
	}
	_, err = buildinfo.ReadFile(path)
	return err == nil
}
