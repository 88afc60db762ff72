// Package leaks finds goroutines that a test has left behind.
package leaks

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long goroutines have to end after the tests.
var patience = 5 * time.Second

// Main runs a package's tests, and exits with a failure if goroutines are left when all of them
// have passed.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := Find(nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Known are the goroutines of a moment.
type Known map[string]bool

// Now returns the goroutines that there are now.
func Now() Known {
	known := make(Known)
	for _, g := range goroutines() {
		known[g.id] = true
	}
	return known
}

// Find waits until the only goroutines are the caller's, those of the testing package and of the
// runtime, and those that were known before. It returns an error with the stacks of the others if
// that takes too long.
func Find(before Known) error {
	var left []goroutine
	for limit := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		left = left[:0]
		for _, g := range goroutines()[1:] { // the first is the caller's
			if !before[g.id] && !g.expected() {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(limit) {
			break
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "leaks: %d goroutines are left:", len(left))
	for _, g := range left {
		fmt.Fprintf(&text, "\n\n%s", g.stack)
	}
	return fmt.Errorf("%s", text.String())
}

// goroutine is one goroutine as the runtime prints it.
type goroutine struct{ id, stack string }

// expected reports whether a goroutine is not the tests' own.
func (g goroutine) expected() bool {
	for _, of := range []string{"testing.(*M).", "testing.(*T).Run(", "testing.tRunner(", "testing.runFuzz", "os/signal.loop", "os/signal.signal_recv", "runtime.ensureSigM", "runtime/pprof.profileWriter"} {
		if strings.Contains(g.stack, of) {
			return true
		}
	}
	return false
}

// goroutines returns all goroutines, the caller's first.
func goroutines() (all []goroutine) {
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	for _, stack := range bytes.Split(buf, []byte("\n\n")) {
		id, _, _ := bytes.Cut(bytes.TrimPrefix(stack, []byte("goroutine ")), []byte(" "))
		all = append(all, goroutine{string(id), string(stack)})
	}
	return all
}
