package fault

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed clock.c.txt
var clockSource []byte

// Clock is a wall clock of its own for processes on Linux, by a library that the C compiler makes. Faketime cannot
// do it: a Redis with jemalloc, and Java, do not start with it. Programs in Go do not ask the C library for the
// time, so a Clock has no effect on them. Its methods are safe for concurrent use.
type Clock struct{ file, library string }

// NewClock makes a clock with its files in a folder. It returns an error if there is no C compiler.
func NewClock(dir string) (*Clock, error) {
	dir, err := os.MkdirTemp(dir, "clock")
	if err != nil {
		return nil, err
	}
	c := &Clock{filepath.Join(dir, "forward"), filepath.Join(dir, "clock.so")}
	source := filepath.Join(dir, "clock.c")
	if err := os.WriteFile(source, clockSource, 0o666); err != nil {
		return nil, err
	}
	if out, err := exec.Command("cc", "-O1", "-shared", "-fPIC", "-o", c.library, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile a clock: %w: %s: install gcc, or choose no fault of a clock", err, out)
	}
	return c, c.Set(0)
}

// Set sets the clock forward by a time from the machine's clock.
func (c *Clock) Set(forward time.Duration) error {
	file, err := os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o666) // not truncated: processes have it in their memory
	if err != nil {
		return err
	}
	err = binary.Write(file, binary.NativeEndian, int64(forward/time.Second))
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// Env has the variables for a process with this clock; a nil clock has none.
func (c *Clock) Env() []string {
	if c == nil {
		return nil
	}
	return []string{"LD_PRELOAD=" + c.library, "LOCKTEST_CLOCK=" + c.file}
}
