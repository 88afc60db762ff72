package contention

import (
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

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

// outermost is the function that every goroutine begins with.
const outermost = "runtime.goexit"

// lines knows which calls are the program's. To look that up takes microseconds, so it remembers
// it. There are only as many calls as the program has code.
type lines struct {
	mu    sync.RWMutex
	known map[uintptr]string // guarded by mu; pay.go:120 for a call of the program, "" for others
}

// of returns the line of a call, as a label. It is "" if the call is of package zklock, of a package
// below it or of this package, and so not the program's.
func (l *lines) of(pc uintptr) string {
	l.mu.RLock()
	line, known := l.known[pc]
	l.mu.RUnlock()
	if known {
		return line
	}
	if f, _ := runtime.CallersFrames([]uintptr{pc}).Next(); !within(f.Function) {
		line = filepath.Base(f.File) + ":" + strconv.Itoa(f.Line)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = make(map[uintptr]string)
	}
	l.known[pc] = line
	return line
}

// trim returns a stack without the innermost calls that are not the program's; the whole stack if
// it has no others.
func (l *lines) trim(s *stack) (t stack) {
	pcs := s.pcs()
	copy(t[:], pcs[max(0, l.first(pcs)):])
	return t
}

// first returns the index of the innermost call that is the program's; -1 if there is none.
func (l *lines) first(pcs []uintptr) int {
	return slices.IndexFunc(pcs, func(pc uintptr) bool { return l.of(pc) != "" })
}

// label returns the line of the program that has called package zklock; "" if there is none, as in
// a goroutine that a package below zklock has started.
func (l *lines) label() string {
	var pcs [32]uintptr // zklock's calls are fewer
	inner := pcs[:runtime.Callers(1, pcs[:])]
	if i := l.first(inner); i >= 0 {
		return l.of(inner[i])
	}
	return ""
}

var (
	zklockPath = reflect.TypeFor[zklock.Lock]().PkgPath()
	ownPath    = reflect.TypeFor[Profile]().PkgPath()
)

// within reports whether a function is of package zklock, of a package below it or of this package,
// or one of the runtime's at an end of a stack.
func within(function string) bool {
	if function == outermost || function == "runtime.Callers" {
		return true
	}
	rest, found := strings.CutPrefix(function, zklockPath)
	if !found {
		rest, found = strings.CutPrefix(function, ownPath)
	}
	return found && rest != "" && (rest[0] == '.' || rest[0] == '/')
}
