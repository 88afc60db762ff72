//go:build race

package command_test

const raceEnabled = true
