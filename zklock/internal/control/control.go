// Package control has options of clients that only tests of this project need, and what package
// zklocktest needs of a client that is open.
package control

import (
	"context"
	"time"
)

var jitter, keepAfter, observe, callers any

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

// Observe makes a *zklock.Client call f at each acquisition, on its goroutine, before the acquisition can
// wait: with the context whose locks it carries, the place.Wants, and whether it is a try. It does not call
// f for an acquisition that joins a lock by Reenter, or fails because its context carries the name. Many
// goroutines may call f at once. f must not keep or change the wants. stop ends that for later acquisitions.
func Observe[Client, Want any](c Client, f func(ctx context.Context, wants []Want, try bool)) (stop func()) {
	return observe.(func(Client, func(context.Context, []Want, bool)) func())(c, f)
}

// ProvideObserve sets what Observe calls, as Provide does.
func ProvideObserve[Client, Want any](f func(Client, func(context.Context, []Want, bool)) (stop func())) {
	observe = f
}

// CallersIn returns the zklock.CallerLocks that a context carries.
func CallersIn[Lock any](ctx context.Context) []Lock {
	return callers.(func(context.Context) []Lock)(ctx)
}

// ProvideCallersIn sets what CallersIn calls, as Provide does.
func ProvideCallersIn[Lock any](f func(context.Context) []Lock) { callers = f }
