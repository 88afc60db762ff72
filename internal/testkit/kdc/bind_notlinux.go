//go:build !linux

package kdc

import "os/exec"

// bindToParent does nothing: only Linux can kill a process when its parent ends.
func bindToParent(*exec.Cmd) {}
