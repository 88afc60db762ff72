//go:build !race

package middleware_test

// raceEnabled says that the race detector is on.
const raceEnabled = false
