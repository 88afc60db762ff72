package holding

import (
	"runtime"
	"runtime/debug"
)

// Outcome is how a function has ended that Aside called.
type Outcome struct {
	err      error
	returned bool // otherwise it panicked or called runtime.Goexit
	panicked any
}

// Aside calls f on another goroutine, for a caller that must stop waiting when its context ends.
// The channel gets the outcome, and never blocks that goroutine. A panic of f on that goroutine
// would end the process. So Aside recovers it, and Return panics with it again if the caller still
// waits. The stack of the panic is lost by then, so logPanic gets the stack before.
func Aside(f func() error, logPanic func(panicked any, stack string)) <-chan Outcome {
	got := make(chan Outcome, 1)
	go func() {
		var o Outcome
		defer func() {
			if !o.returned {
				if o.panicked = recover(); o.panicked != nil {
					logPanic(o.panicked, string(debug.Stack()))
				}
			}
			got <- o
		}()
		o.err = f()
		o.returned = true
	}()
	return got
}

// Return ends as the function has ended: it returns, panics, or calls runtime.Goexit.
func (o Outcome) Return() error {
	switch {
	case o.returned:
		return o.err
	case o.panicked != nil:
		panic(o.panicked)
	}
	runtime.Goexit()
	return nil
}
