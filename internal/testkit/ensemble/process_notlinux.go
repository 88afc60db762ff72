//go:build !linux

package ensemble

import "os/exec"

// bindToParent does nothing: only Linux can kill a process when its parent ends.
func bindToParent(*exec.Cmd) {}

// stopped takes a process that was sent SIGSTOP as stopped: only Linux shows the state of
// each of its threads.
func stopped(int) (bool, error) { return true, nil }
