//go:build unix

package run

import (
	"syscall"

	"github.com/zklock/go-zklock/cmd/zklock/internal/tty"
)

// terminal is the terminal at standard input, if there is one. The command's group is in its
// foreground while the wrapper's own would be without the command.
type terminal struct {
	fd    int
	is    bool             // it is a terminal, and that of the wrapper's session
	given bool             // the command's group is in the foreground, as far as the wrapper knows
	state *syscall.Termios // as it was before the command's group got it
}

// openTerminal returns the terminal at standard input.
func openTerminal() terminal {
	t := terminal{fd: 0}
	_, err := tty.Foreground(t.fd)
	t.is = err == nil
	return t
}

// foreground reports whether the wrapper's own group is in the foreground.
func (t *terminal) foreground() bool {
	group, err := tty.Foreground(t.fd)
	return err == nil && group == syscall.Getpgrp()
}

// give puts a group into the foreground, if the wrapper is there.
func (t *terminal) give(group int) {
	if !t.is {
		return
	}
	now, err := tty.Foreground(t.fd)
	t.given = err == nil && now == group
	if err == nil && now == syscall.Getpgrp() {
		t.state, _ = tty.Modes(t.fd)
		t.given = tty.SetForeground(t.fd, group) == nil
	}
}

// take puts the wrapper's own group into the foreground again. The wrapper must ignore TTOU by
// now: otherwise it would be stopped, because it is in the background.
func (t *terminal) take() {
	if t.given {
		t.given = false
		_ = tty.SetForeground(t.fd, syscall.Getpgrp())
	}
}

// restore sets the terminal's modes as they were: a command that was killed could not do so.
func (t *terminal) restore() {
	if t.state != nil && t.foreground() {
		_ = tty.SetModes(t.fd, t.state)
	}
}
