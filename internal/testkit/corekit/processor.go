package corekit

import (
	"runtime"
	"runtime/debug"
)

// SingleProcessor makes goroutines run one at a time, in an order that repeats itself: on
// one processor, and without a garbage collector that would interrupt them. The function
// that it returns undoes that.
func SingleProcessor() func() {
	procs, percent := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1)
	return func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
	}
}
