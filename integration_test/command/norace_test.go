//go:build !race

package command_test

var raceFlags []string
