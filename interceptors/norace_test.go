//go:build !race

package interceptors_test

// raceEnabled says that the race detector is on, which allocates too.
const raceEnabled = false
