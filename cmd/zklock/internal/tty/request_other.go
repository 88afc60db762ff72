//go:build unix && !linux

package tty

import "syscall"

const (
	getModes = syscall.TIOCGETA
	setModes = syscall.TIOCSETA
)
