package session

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/hook"
)

// Settings are what sessions and their pool go by.
type Settings struct {
	Root           string // below which is everything
	SessionTimeout time.Duration
	TickTime       time.Duration
	ConnectTimeout time.Duration
	LossDelay      time.Duration // how much sooner than its session a lock ends that is lost

	PoolMaxSessions int
	PoolMaxLifetime time.Duration // 0: sessions are not replaced because of their age

	Jitter       func(time.Duration) time.Duration // the function of that name, but for runs that have to repeat themselves
	Logger       *slog.Logger
	DriverLogger *slog.Logger // nil if the program has given none

	Operation hook.Starter[Operation, error] // is called around every request; may be nil
	Changed   func(State)                    // is called when a session's state changes, and after each heartbeat; may be nil
}

// Operation is a request to the ensemble.
type Operation struct {
	Kind    string // what for
	Group   int    // how many callers' writes travel in it
	Server  string // that it is sent to, as far as known
	Session int64  // that it is sent on
}

// State is what has become of a session.
type State struct {
	ID     int64
	Server string // that it is connected to, as far as known
	State  driver.State
	Lease  time.Duration // what is left of it; 0 if nothing is held or queued
	Err    error         // why it ended, if it did
}

// MinTicks is how many ticks a session timeout has to be for a lease to be
// provable and renewed in time: a proof is up to a tick, two heartbeats and
// their round trips old when it counts.
const MinTicks = 3

// LeaseTimeout is the session timeout that leases are made of.
func (c *Settings) LeaseTimeout(timeout time.Duration) time.Duration { return timeout - c.LossDelay }

// LossDelayFits says what a session timeout, asked for or granted, leaves of
// leases: enough ticks to prove and renew them, and no less than the delay.
func (c *Settings) LossDelayFits(timeout time.Duration) error {
	need := max(MinTicks*c.TickTime+c.LossDelay, 2*c.LossDelay)
	if c.LossDelay == 0 || timeout >= need {
		return nil
	}
	return fmt.Errorf("loss_delay=%v takes too much of a session timeout of %v: with tick_time=%v that has to be at least %v (%d times tick_time and loss_delay, and twice loss_delay)",
		c.LossDelay, timeout, c.TickTime, need, MinTicks)
}

// Jitter returns between half of d and d, so that many clients that met the
// same trouble do not come back as one.
func Jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}

// early returns how much sooner than a period is over the next exchange of a heart
// comes: up to a tenth of it. Many clients that a quorum answered at one moment do not
// stay in step.
func (c *Settings) early() func(period time.Duration) time.Duration {
	const whole = 1000
	part := 2*c.Jitter(whole) - whole // 0 to whole
	return func(period time.Duration) time.Duration { return period / 10 * part / whole }
}
