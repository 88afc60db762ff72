//go:build unix

// Package screen draws on a whole terminal, and leaves it as it was.
package screen

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/zklock/go-zklock/cmd/zklock/internal/tty"
)

// ErrNoTerminal means that the input or the output is not a terminal.
var ErrNoTerminal = errors.New("not a terminal")

// Screen is a terminal that delivers keys at once and does not show them. It covers what was on
// the terminal with a second screen.
type Screen struct {
	in, out *os.File
	before  *syscall.Termios
}

// Sequences that control a terminal.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l" // another screen, without a cursor, and without line wrap
	leave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	clear = "\x1b[K" // the rest of the line
	below = "\x1b[J" // the rest of the screen
)

// Open begins to use a terminal.
func Open(in, out *os.File) (*Screen, error) {
	before, err := tty.Modes(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("the input: %w", ErrNoTerminal)
	}
	if _, err := tty.Modes(int(out.Fd())); err != nil {
		return nil, fmt.Errorf("the output: %w", ErrNoTerminal)
	}
	s := &Screen{in: in, out: out, before: before}
	mode := *before
	// Keys that send signals are keys here, so that no signal ends the program before it has
	// restored the terminal.
	mode.Lflag &^= syscall.ICANON | syscall.ECHO | syscall.ISIG
	mode.Cc[syscall.VMIN], mode.Cc[syscall.VTIME] = 1, 0
	if err := tty.SetModes(int(in.Fd()), &mode); err != nil {
		return nil, fmt.Errorf("set the terminal's mode: %w", err)
	}
	if _, err := out.WriteString(enter); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close leaves the terminal as it was.
func (s *Screen) Close() {
	_, _ = s.out.WriteString(leave)
	_ = tty.SetModes(int(s.in.Fd()), s.before)
}

// Size returns the number of columns and lines.
func (s *Screen) Size() (width, height int) {
	width, height, err := tty.Size(int(s.out.Fd()))
	if err != nil || width == 0 || height == 0 {
		return 80, 24
	}
	return width, height
}

// Draw shows lines in place of what was there. Lines that do not fit are left out.
func (s *Screen) Draw(lines []string) error {
	_, height := s.Size()
	var b bytes.Buffer
	b.WriteString(home)
	for i, line := range lines[:min(len(lines), height)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + clear)
	}
	b.WriteString(below)
	_, err := s.out.Write(b.Bytes())
	return err
}
