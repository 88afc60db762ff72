package zklock

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/hook"
)

// settings are what sessions and their pool go by.
type settings struct {
	root           string // below which is everything
	sessionTimeout time.Duration
	tickTime       time.Duration
	connectTimeout time.Duration
	lossDelay      time.Duration // how much sooner than its session a lock ends that is lost

	poolMaxSessions int
	poolMaxLifetime time.Duration // 0: sessions are not replaced because of their age

	jitter       func(time.Duration) time.Duration // the function of that name, but for runs that have to repeat themselves
	logger       *slog.Logger
	driverLogger *slog.Logger // nil if the program has given none

	operation hook.Starter[operation, error] // is called around every request; may be nil
	changed   func(sessionState)             // is called when a session's state changes, and after each heartbeat; may be nil
}

// operation is a request to the ensemble.
type operation struct {
	Kind    string // what for
	Group   int    // how many callers' writes travel in it
	Server  string // that it is sent to, as far as known
	Session int64  // that it is sent on
}

// sessionState is what has become of a session.
type sessionState struct {
	ID     int64
	Server string // that it is connected to, as far as known
	State  driver.State
	Lease  time.Duration // what is left of it; 0 if nothing is held or queued
	Err    error         // why it ended, if it did
}

// minTicks is how many ticks a session timeout has to be for a lease to be
// provable and renewed in time: a proof is up to a tick, two heartbeats and
// their round trips old when it counts.
const minTicks = 3

// leaseTimeout is the session timeout that leases are made of.
func (c *settings) leaseTimeout(timeout time.Duration) time.Duration { return timeout - c.lossDelay }

// lossDelayFits says what a session timeout, asked for or granted, leaves of
// leases: enough ticks to prove and renew them, and no less than the delay.
func (c *settings) lossDelayFits(timeout time.Duration) error {
	need := max(minTicks*c.tickTime+c.lossDelay, 2*c.lossDelay)
	if c.lossDelay == 0 || timeout >= need {
		return nil
	}
	return fmt.Errorf("loss_delay=%v takes too much of a session timeout of %v: with tick_time=%v that has to be at least %v (%d times tick_time and loss_delay, and twice loss_delay)",
		c.lossDelay, timeout, c.tickTime, need, minTicks)
}

// jitter returns between half of d and d, so that many clients that met the
// same trouble do not come back as one.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}

// early returns how much sooner than a period is over the next exchange of a heart
// comes: up to a tenth of it. Many clients that a quorum answered at one moment do not
// stay in step.
func (c *settings) early() func(period time.Duration) time.Duration {
	const whole = 1000
	part := 2*c.jitter(whole) - whole // 0 to whole
	return func(period time.Duration) time.Duration { return period / 10 * part / whole }
}
