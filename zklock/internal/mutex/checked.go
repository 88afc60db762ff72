//go:build zklock_mutexes

package mutex

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"sync"
)

// Mutex is a mutex of a level, whose Lock panics if its goroutine must not lock it now.
type Mutex[L Level] struct{ mu sync.Mutex }

// Lock locks m, as [sync.Mutex.Lock] does.
func (m *Mutex[L]) Lock() {
	var l L
	enter(m, l.outer())
	m.mu.Lock()
}

// Unlock unlocks m, as [sync.Mutex.Unlock] does.
func (m *Mutex[L]) Unlock() {
	leave(m)
	m.mu.Unlock()
}

// locked is one mutex that a goroutine holds, or waits for.
type locked struct {
	mutex any
	outer bool
	stack []uintptr
}

// held has the mutexes of each goroutine that holds one, by its number, in the order of their locking.
// Only that goroutine uses its slice.
var held sync.Map // of goroutine number to []locked

// enter notes that this goroutine locks a mutex.
func enter(m any, outer bool) {
	id := goroutine()
	var mine []locked
	if v, ok := held.Load(id); ok {
		mine = v.([]locked)
	}
	pcs := make([]uintptr, 16)
	pcs = pcs[:runtime.Callers(3, pcs)]
	for _, l := range mine {
		if outer || !l.outer {
			panic(fmt.Sprintf("a goroutine that holds a %T locks a %T\nthe first was locked at\n%s\nand the second is locked at\n%s", l.mutex, m, frames(l.stack), frames(pcs)))
		}
	}
	held.Store(id, append(mine, locked{m, outer, pcs}))
}

// leave notes that this goroutine unlocks a mutex. None is unlocked by another goroutine.
func leave(m any) {
	id := goroutine()
	v, _ := held.Load(id)
	mine, _ := v.([]locked)
	for i := len(mine) - 1; i >= 0; i-- {
		if mine[i].mutex == m {
			if len(mine) == 1 {
				held.Delete(id)
			} else {
				held.Store(id, append(mine[:i:i], mine[i+1:]...))
			}
			return
		}
	}
	panic(fmt.Sprintf("a goroutine unlocks a %T that it has not locked", m))
}

// goroutine returns the number of this goroutine, which package runtime shows in stacks only.
func goroutine() int64 {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	n, err := strconv.ParseInt(string(text[:bytes.IndexByte(text, ' ')]), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// frames returns the functions and lines of a stack.
func frames(pcs []uintptr) string {
	var text bytes.Buffer
	for f := runtime.CallersFrames(pcs); ; {
		frame, more := f.Next()
		fmt.Fprintf(&text, "\t%s\n\t\t%s:%d\n", frame.Function, frame.File, frame.Line)
		if !more {
			return text.String()
		}
	}
}
