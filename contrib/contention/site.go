package contention

import (
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock/go-zklock/zklock"
)

// depth is how many calls of a stack are kept; the outer ones of a deeper stack are left out.
const depth = 64

// stack has the program counters of a call stack, innermost first, as runtime.Callers returns
// them. The rest is 0.
type stack [depth]uintptr

// capture sets s to the stack of the calling goroutine, from the caller's caller on.
func (s *stack) capture() {
	const skip = 3 // runtime.Callers, capture and its caller
	clear(s[runtime.Callers(skip, s[:]):])
}

// pcs returns the program counters that are not 0.
func (s *stack) pcs() []uintptr {
	if n := slices.Index(s[:], 0); n >= 0 {
		return s[:n]
	}
	return s[:]
}

// trimmed returns the stack without its calls in zklock.
func (s *stack) trimmed() (t stack) {
	copy(t[:], outside(s.pcs()))
	return t
}

// calls returns the calls of a stack; nil if it is zero.
func (s *stack) calls() (calls []runtime.Frame) {
	frames := runtime.CallersFrames(s.pcs())
	for more := s[0] != 0; more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.Function != outermost {
			calls = append(calls, f)
		}
	}
	return calls
}

// callerLabel returns the line that has called package zklock, as a label; "" if there is none,
// as in a goroutine that a package below zklock has started.
func callerLabel() string {
	var s stack
	s.capture()
	f, _ := runtime.CallersFrames(outside(s.pcs())).Next()
	if within(f.Function) || f.Line == 0 {
		return ""
	}
	return filepath.Base(f.File) + ":" + strconv.Itoa(f.Line)
}

// outside leaves out the innermost calls of a stack that are within zklock. If there are no others,
// it returns the whole stack.
func outside(pcs []uintptr) []uintptr {
	for i := range pcs {
		f, _ := runtime.CallersFrames(pcs[i : i+1]).Next()
		if f.Function == outermost {
			break
		}
		if !within(f.Function) {
			return pcs[i:]
		}
	}
	return pcs
}

// outermost is the function that every goroutine begins with.
const outermost = "runtime.goexit"

var (
	zklockPath = reflect.TypeFor[zklock.Lock]().PkgPath()
	ownPath    = reflect.TypeFor[Profile]().PkgPath()
)

// within reports whether a function is of package zklock, of a package below it, or of this package.
func within(function string) bool {
	rest, found := strings.CutPrefix(function, zklockPath)
	if !found {
		rest, found = strings.CutPrefix(function, ownPath)
	}
	return found && rest != "" && (rest[0] == '.' || rest[0] == '/')
}
