//go:build !linux

package ensemble

import "os/exec"

// bindToParent does nothing: only Linux can kill a process when its parent ends.
func bindToParent(*exec.Cmd) {}
