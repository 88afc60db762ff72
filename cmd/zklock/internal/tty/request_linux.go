package tty

import "syscall"

const (
	getModes = syscall.TCGETS
	setModes = syscall.TCSETS
)
