//go:build !race

package zklock_test

const raceEnabled = false
