package gocronlock

import (
	"fmt"
	"time"
)

// defaultPrefix precedes the names of jobs; the comment of WithPrefix quotes it.
const defaultPrefix = "cron/"

// Option is a setting of a [Locker] or of [Once]. A later option overrides an earlier one of
// the same kind.
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// settings are what options set.
type settings struct {
	prefix string
	slots  time.Duration // 0: none
	wait   *time.Duration
	hold   time.Duration
	now    func() time.Time
}

func newSettings(opts []Option) settings {
	s := settings{prefix: defaultPrefix, now: time.Now}
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	return s
}

// waits returns how long to wait for a scheduler that runs the job.
func (s *settings) waits() time.Duration {
	if s.wait != nil {
		return *s.wait
	}
	return s.slots / 2
}

// WithPrefix sets what precedes the name of a job in the name of its lock. The default is
// "cron/". A job that has no name gets its function's from gocron.
func WithPrefix(prefix string) Option { return option(func(s *settings) { s.prefix = prefix }) }

// WithSlots makes each job run once in each slot of time, and not only once at a time. The slot
// of a run is the time by the scheduler's clock, rounded to a multiple of d. So d is at most the
// time between two runs of a job, and more than twice the difference between the clocks. Of
// schedulers that start duration jobs at different times, the first one in each slot runs the
// job.
//
// A job must be due at multiples of d: with an hour, at full hours. If it is due in the middle
// between two multiples, a clock that is a little early rounds down to the slot before, and the
// job runs in both slots. For a job at minute 30 of each hour, use a minute.
//
// For jobs with different intervals, use lockers of their own: gocron.WithDistributedJobLocker.
// WithSlots panics if d is not greater than zero.
func WithSlots(d time.Duration) Option {
	if d <= 0 {
		panic(fmt.Sprintf("gocronlock: WithSlots(%v): want a duration greater than zero, such as the time between two runs", d))
	}
	return option(func(s *settings) { s.slots = d })
}

// WithWait sets how long a scheduler waits while another one runs the same job. If that one dies
// in the meantime, this one runs the job. The default is half a slot with [WithSlots] and
// [Once], which is 12 hours for a slot of a day, and otherwise zero: the job is skipped at once.
func WithWait(d time.Duration) Option { return option(func(s *settings) { s.wait = &d }) }

// WithMaxHold ends the context of a job of [Once] that runs for d, with [zklock.ErrMaxHold] as the cause: see
// [zklock.WithMaxHold]. By default the time is not limited. It has no effect on a [Locker], since gocron gives it
// no way to the context of a job; for an [Elector], use election.WithMaxHold.
func WithMaxHold(d time.Duration) Option { return option(func(s *settings) { s.hold = d }) }

// WithClock sets the clock that says which slot it is: that of a scheduler with
// gocron.WithClock. The default is [time.Now]. WithClock panics if now is nil.
func WithClock(now func() time.Time) Option {
	if now == nil {
		panic("gocronlock: WithClock: the clock is nil: pass a function such as time.Now")
	}
	return option(func(s *settings) { s.now = now })
}
