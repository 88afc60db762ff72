//go:build race

package corekit

// Race reports whether the race detector is on. It makes tests slower, needs more memory, and runs
// goroutines in random order.
const Race = true
