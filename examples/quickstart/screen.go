package main

import (
	"fmt"
	"io"
	"os"
)

// colourful reports whether out is a terminal whose user has not turned colours off
// (no-color.org).
func colourful(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (s *story) print(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

func (s *story) bold(text string) string  { return s.in("1", text) }
func (s *story) red(text string) string   { return s.in("31", text) }
func (s *story) green(text string) string { return s.in("32", text) }

// in returns text in a terminal's colour or weight. If colours are off, it returns text
// unchanged.
func (s *story) in(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
