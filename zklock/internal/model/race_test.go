//go:build race

package model

// underRace: the race detector makes an exploration several times slower, and finds nothing in
// it, since it has one goroutine.
const underRace = true
