package once

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zklock/go-zklock/internal/backlog"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Every runs job once for each slot of the length period, in one process of the fleet that calls
// Every with the same name and period. It goes on until ctx ends.
//
// A slot begins at each multiple of the period since the zero time, in UTC, like the results of
// [time.Time.Truncate]: a day begins at midnight, and seven days on a Monday. The period is a
// number of whole seconds. [WithZone] has days that begin at another time, in a zone. job gets the slot's beginning, and runs on the caller's goroutine. Its
// context is that of [Do]: it ends with ctx and with the lock, and carries the lock. It does not
// end with the slot.
//
// When a slot begins by its clock, each process waits for the lock of the name. The first one runs
// the job. The others wait until it ends: if it fails or its process dies, the next process runs
// the slot. A clock that is wrong makes a slot run early or late, never twice.
//
// The ledger says where the fleet goes on after an outage, and after a restart of all processes.
// Without a ledger the schedule begins with the slot at the time of the call. [WithMissed] sets
// what happens to slots that have ended and have not run. The ledger is that of Do, with slots in
// RFC 3339: a program that called Do with such slots may go on with Every.
//
// If job fails, Every calls it again in the same slot, after a pause: see [WithRetry]. Each failure
// is logged. So is each slot that does not run, in one line for all that were missed together: see
// [WithLogger].
//
// Every returns when ctx has ended and job has returned, with an error that matches that of ctx and
// its cause. Before that it returns only errors that do not pass. They match [zklock.ErrMisuse] if
// an argument is wrong, [zklock.ErrConflict] if the ledger has another kind of slots,
// [zklock.ErrNoAuth] if a right is missing, [zklock.ErrDeadlock] or [zklock.ErrLost] if ctx carries
// a lock of the name, or [zklock.ErrInvalidName], [zklock.ErrClosed], or [zklock.ErrBadEnsemble]
// with the reason token_regression. A conflict with another program's ephemeral znode passes. If the
// client is closed during a pause, Every notices that within a second. If job panics, the slot stays
// open, and the panic goes on when the lock is released.
func Every(ctx context.Context, client *zklock.Client, name string, period time.Duration, job func(ctx context.Context, slot time.Time) error, opts ...Option) error {
	s := schedule{name: name, settings: newSettings(opts)}
	s.period = period
	if err := s.check(job); err != nil {
		return failed("every", name, err)
	}
	defer s.lines.Flush(backlog.Patience)
	s.last = s.before(s.present())
	pause := s.pause
	for ctx.Err() == nil {
		var failure error // of the job
		ran, err := run(ctx, "every", client, name, textOf(s.last), s.next, func(ctx context.Context) error {
			if s.called++; s.called == 1 {
				pause = s.pause // a new slot
			}
			failure = job(ctx, s.slot)
			return failure
		}, zklock.WithMaxHold(s.maxHold))
		switch {
		case err == nil:
			pause = s.pause
			s.rest(ctx, client, s.until)
			continue
		case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))):
			continue // an end and not a failure
		case failure == nil && isFinal(err):
			return err
		case ran:
			s.log().Warn("once: a slot failed", "name", name, "slot", s.slot, "call", s.called, "error", err)
			if s.called == s.calls {
				s.log().Error("once: a slot failed too often; this process gives it up", "name", name, "slot", s.slot, "calls", s.called)
				s.closed = s.slot
			}
		default:
			s.log().Warn("once: no slot can begin", "name", name, "error", err)
		}
		again, end := s.now().Add(pause/2+rand.N(pause/2+1)), s.after(s.present())
		if end.Before(again) {
			again = end // the next slot does not wait for the pause
		}
		s.rest(ctx, client, again)
		pause = max(s.pause, min(2*pause, mostPause))
	}
	return failed("every", name, errs.Ended(ctx))
}

// schedule is one call of Every. Invariants:
//
//   - A slot that has run successfully never runs again, nor does an earlier one: run calls the job
//     only for a slot above the ledger's, under the lock, and records it there. After a failed call
//     for a slot, a process whose clock is behind may still run the slot before that one.
//   - A slot that will never run has a line in the log of the process that passes it over, handed to
//     the log before a later slot runs; no slot waits for the log. Slots are passed over in two
//     places: by next, under the lock, and when the job was called too often.
type schedule struct {
	name string
	settings
	lines backlog.Queue // of the log: one is logged under the lock

	last   time.Time // the ledger's slot as this process read it last; at first, the one before the present slot
	closed time.Time // this process runs no slot up to here: it has passed them over
	logged time.Time // the log has the missed slots up to here
	ahead  time.Time // the ledger's slot that the log has reported as far ahead of the clock

	slot   time.Time // the slot that next has chosen
	called int       // how often the job was called for it
	until  time.Time // when to look again after next, if nothing fails
}

// log returns the logger of Every, which never waits.
func (s *schedule) log() *slog.Logger { return s.lines.Logger(s.logger) }

// present returns the slot of this moment.
func (s *schedule) present() time.Time { return s.calendar.slot(s.now()) }

// next chooses the first slot that is due by the rule for missed slots, and returns "" if none is.
// recorded is the ledger's slot. The caller holds the lock, so a slot that another process is
// running is not taken for a missed one.
func (s *schedule) next(recorded string) (string, error) {
	if recorded != "" {
		t, err := time.Parse(time.RFC3339, recorded)
		if err != nil || textOf(t) != recorded { // slots are compared as texts
			return "", fmt.Errorf("%w: the ledger has the slot %.100q, which is not of Every: use another name, or call Forget", zklock.ErrConflict, recorded)
		}
		s.last = t
	}
	present, slot := s.present(), s.after(s.last)
	if !slot.After(s.closed) {
		slot = s.after(s.closed)
	}
	if slot.After(present) {
		if s.last.After(s.after(present)) && !s.last.Equal(s.ahead) { // else a clock may be behind a little
			s.log().Warn("once: the ledger is ahead of the clock; no slot runs before that time", "name", s.name, "ledger", s.last, "slot", present)
			s.ahead = s.last
		}
		s.until = s.after(present)
		return "", nil
	}
	if latest := s.before(present); !slot.After(latest) {
		slot = s.pass(slot, latest)
	}
	if !slot.Equal(s.slot) {
		s.slot, s.called = slot, 0
	}
	s.until = s.after(slot)
	return textOf(slot), nil
}

// pass passes over the slots that were missed, from first to latest, as the rule says. It returns
// the slot that runs next.
func (s *schedule) pass(first, latest time.Time) time.Time {
	slot := first
	switch s.missed {
	case Skip:
		slot = s.after(latest)
	case RunLatest:
		slot = latest
	}
	if latest.After(s.logged) { // else a call has failed since the line was written
		s.log().Warn("once: slots were missed", "name", s.name, "missed", s.between(first, latest)+1, "first", first, "last", latest,
			"rule", s.missed.String(), "skipped", s.between(first, slot), "next", slot)
		s.logged = latest
	}
	s.closed = s.before(slot)
	return slot
}

// check returns an error if the arguments of Every make no schedule.
func (s *schedule) check(job func(context.Context, time.Time) error) error {
	switch {
	case job == nil:
		return errNoJob
	case s.missed < Skip || s.missed > RunAll:
		return misuse(fmt.Sprintf("WithMissed has the value %d: pass Skip, RunLatest or RunAll", s.missed))
	case s.calls < 0 || s.pause < 0:
		return misuse(fmt.Sprintf("WithRetry has the values %d and %v: they cannot be negative", s.calls, s.pause))
	}
	return s.calendar.check()
}

// textOf returns the text of a slot in the ledger.
func textOf(slot time.Time) string { return slot.UTC().Format(time.RFC3339) }

// final are the errors of a ledger or an acquisition that do not pass.
var final = []error{zklock.ErrClosed, zklock.ErrInvalidName, zklock.ErrConflict, zklock.ErrMisuse, zklock.ErrDeadlock, errs.ErrTokenRegression, zklock.ErrNoAuth, errOuterLost}

// isFinal reports whether another try is useless after err. It is not after a conflict with another
// program's ephemeral znode, which goes with its session.
func isFinal(err error) bool {
	return !errors.Is(err, driver.ErrNoChildrenForEphemerals) && slices.ContainsFunc(final, func(f error) bool { return errors.Is(err, f) })
}

// rest waits until the clock shows t, ctx ends, or the client is closed. It looks every second: a
// timer stops with a suspended machine, and does not notice that the clock was set.
func (s *schedule) rest(ctx context.Context, c *zklock.Client, t time.Time) {
	for d := t.Sub(s.now()); d > 0 && ctx.Err() == nil && !errors.Is(c.Healthy(), zklock.ErrClosed); d = t.Sub(s.now()) {
		sleep(ctx, min(d, time.Second), nil)
	}
}
