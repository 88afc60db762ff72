package once

import (
	"log/slog"
	"time"
)

// Option is a setting of [Every]. A later option overrides an earlier one of the same kind.
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// settings are what options set.
type settings struct {
	calendar
	missed  Missed
	maxHold time.Duration
	calls   int // of the job for one slot; 0: no limit
	pause   time.Duration
	logger  *slog.Logger
	now     func() time.Time // the clock
}

// The first pause after a failure, and the longest one.
const (
	firstPause = time.Second
	mostPause  = time.Minute
)

func newSettings(opts []Option) settings {
	s := settings{pause: firstPause, now: time.Now}
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	return s
}

// Missed is a rule for slots that were missed: slots that have ended, and have not run. The ensemble
// or all processes were down, the job failed until the slot ended, or an earlier run took longer than
// a period.
type Missed int

const (
	// Skip runs none of the missed slots. It is the default.
	Skip Missed = iota

	// RunLatest runs the latest of the missed slots, and skips those before it.
	RunLatest

	// RunAll runs all missed slots, in their order. The present slot waits for them, so a slot
	// that fails holds up all later ones, if [WithRetry] does not limit the calls.
	RunAll
)

// String returns the rule as in the log: skip, run latest or run all.
func (m Missed) String() string {
	switch m {
	case Skip:
		return "skip"
	case RunLatest:
		return "run latest"
	case RunAll:
		return "run all"
	}
	return "unknown"
}

// WithMissed sets the rule for slots that were missed. All processes of the fleet need the same
// one. The default is [Skip].
func WithMissed(rule Missed) Option { return option(func(s *settings) { s.missed = rule }) }

// WithRetry limits how often a process calls the job for one slot, and sets the first pause after
// a call that failed. The pause doubles from failure to failure, up to a minute, or up to the first
// pause if that is longer. Each pause is random, from half of that value to the whole, so that the
// processes of a fleet do not retry together. After the last call the process gives the slot up; another process may
// still run it. With calls of 0 the calls go on until the slot ends, which is the default; the
// default of pause is a second, also for a pause of 0.
func WithRetry(calls int, pause time.Duration) Option {
	return option(func(s *settings) {
		s.calls, s.pause = calls, pause
		if pause == 0 {
			s.pause = firstPause
		}
	})
}

// WithZone makes slots begin at a time of the day, at after midnight, by the clocks in a zone: WithZone(berlin, 2*time.Hour)
// at 02:00. The period must be a number of days. Where clocks are set, a slot lasts 23 or 25 hours, and runs once. Where a day
// does not have the time, the slot is later by as much as the clocks are set, or earlier if that is on the next day; of a time
// that a day has twice, all processes take the same. job gets the slot's beginning in the zone: each day has one, with its date.
// All processes of the fleet need the same option, and rules of the zone that are not years old. By default slots begin at
// midnight UTC. If the option changes, the next slot is the first one of the new kind behind the ledger's, so a day may have two.
//
// WithZone panics if zone is nil.
func WithZone(zone *time.Location, at time.Duration) Option {
	if zone == nil {
		panic("once: WithZone: the zone is nil: pass one that time.LoadLocation has returned")
	}
	return option(func(s *settings) { s.zone, s.at = zone, at })
}

// WithMaxHold ends the context of a job that runs for d, with [zklock.ErrMaxHold] as the cause: see [zklock.WithMaxHold]. A
// job that returns an error then has failed, as [WithRetry] describes. The slot stays with this process until the job has
// returned. By default the time is not limited. For [Do], pass zklock.WithMaxHold.
func WithMaxHold(d time.Duration) Option { return option(func(s *settings) { s.maxHold = d }) }

// WithLogger sets the logger for slots that failed or were missed. By default it is slog's default
// logger. WithLogger(nil) turns the log off. No slot waits for its handler: see [zklock.WithLogger].
func WithLogger(l *slog.Logger) Option {
	return option(func(s *settings) {
		if l == nil {
			l = slog.New(slog.DiscardHandler)
		}
		s.logger = l
	})
}
