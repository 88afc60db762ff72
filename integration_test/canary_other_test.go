//go:build !linux

package integration_test

import "os/exec"

// endWithParent does nothing: only Linux can kill a process when its parent ends.
func endWithParent(*exec.Cmd) {}
