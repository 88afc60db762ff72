//go:build !zklock_mutexes

// Package mutex has the mutexes of the core. A goroutine holds at most one of them, with one
// exception: under an [Outer] it may lock one [Inner]. So there is no order of mutexes to keep, and
// no two goroutines wait for each other.
//
// With the build tag zklock_mutexes each Lock checks that, and panics with both stacks if it is
// not so. Without the tag a Mutex is a [sync.Mutex], and its level costs nothing.
package mutex

import "sync"

// Mutex is a mutex of a level.
type Mutex[L Level] struct{ sync.Mutex }
