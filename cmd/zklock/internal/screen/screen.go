//go:build unix

// Package screen draws on a whole terminal, and leaves it as it was.
package screen

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNoTerminal means that the input or the output is not a terminal.
var ErrNoTerminal = errors.New("not a terminal")

// Screen is a terminal in a mode in which keys arrive at once and are not shown, with a second
// screen in front of what was there before.
type Screen struct {
	in, out *os.File
	before  *unix.Termios
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
	before, err := unix.IoctlGetTermios(int(in.Fd()), getTermios)
	if err != nil {
		return nil, fmt.Errorf("the input: %w", ErrNoTerminal)
	}
	if _, err := unix.IoctlGetTermios(int(out.Fd()), getTermios); err != nil {
		return nil, fmt.Errorf("the output: %w", ErrNoTerminal)
	}
	s := &Screen{in: in, out: out, before: before}
	mode := *before
	// Keys that send signals are keys here, so that no signal ends the program before it has
	// restored the terminal.
	mode.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(in.Fd()), setTermios, &mode); err != nil {
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
	_ = unix.IoctlSetTermios(int(s.in.Fd()), setTermios, s.before)
}

// Size returns the number of columns and lines.
func (s *Screen) Size() (width, height int) {
	size, err := unix.IoctlGetWinsize(int(s.out.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
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
