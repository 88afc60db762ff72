//go:build !linux

package ensemble

import "os/exec"

// bindToParent does nothing: only Linux can tie a process to its parent.
func bindToParent(*exec.Cmd) {}
