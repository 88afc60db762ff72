// Package control has options of clients that only tests of this project need.
package control

import "time"

var jitter, keepAfter any

// WithJitter returns a zklock.Option that replaces the function that varies the length of pauses, for
// repeatable runs.
func WithJitter[Option any](f func(time.Duration) time.Duration) Option {
	return jitter.(func(func(time.Duration) time.Duration) Option)(f)
}

// WithKeepAfter returns a zklock.Option that replaces the number of uses in a row that make a client
// keep a name.
func WithKeepAfter[Option any](uses int) Option { return keepAfter.(func(int) Option)(uses) }

// Provide sets what WithJitter and WithKeepAfter call. Package zklock calls it, since this package
// cannot import it.
func Provide[Option any](withJitter func(func(time.Duration) time.Duration) Option, withKeepAfter func(int) Option) {
	jitter, keepAfter = withJitter, withKeepAfter
}
