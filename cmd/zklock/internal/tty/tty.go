//go:build unix

// Package tty reads and sets what belongs to a terminal: the process group in its foreground, its
// modes, its size. It calls ioctl itself: the standard library has no functions for these
// requests, and golang.org/x/sys, which has them, would be one more requirement of the module
// for every program that only wants locks.
package tty

import (
	"syscall"
	"unsafe"
)

// Foreground returns the process group in the foreground of a terminal. It fails if the file is
// no terminal, or not that of the caller's session.
func Foreground(fd int) (group int, err error) {
	var pgid int32
	err = ioctl(fd, syscall.TIOCGPGRP, unsafe.Pointer(&pgid))
	return int(pgid), err
}

// SetForeground puts a process group into the foreground of a terminal.
func SetForeground(fd, group int) error {
	pgid := int32(group)
	return ioctl(fd, syscall.TIOCSPGRP, unsafe.Pointer(&pgid))
}

// Modes returns the modes of a terminal. It fails if the file is not a terminal.
func Modes(fd int) (*syscall.Termios, error) {
	modes := &syscall.Termios{}
	return modes, ioctl(fd, getModes, unsafe.Pointer(modes))
}

// SetModes sets the modes of a terminal.
func SetModes(fd int, modes *syscall.Termios) error {
	return ioctl(fd, setModes, unsafe.Pointer(modes))
}

// Size returns the number of columns and lines of a terminal.
func Size(fd int) (columns, lines int, err error) {
	var size struct{ lines, columns, width, height uint16 }
	err = ioctl(fd, syscall.TIOCGWINSZ, unsafe.Pointer(&size))
	return int(size.columns), int(size.lines), err
}

func ioctl(fd int, request uint, value unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(value)); errno != 0 {
		return errno
	}
	return nil
}
