package gocronlock

import (
	"context"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/once"
)

// Once returns a function for gocron.NewTask that runs a job once in each slot of the length d,
// in all schedulers that use the same ensemble and name. See [WithSlots] for slots.
//
// The context of the job is gocron's; it also ends, with its cause, when the lock is lost, and
// it carries the lock (see [zklock.FromContext]). The function returns nil if the job has run
// in this slot before. It returns the error of the job, which gocron passes to
// AfterJobRunsWithError; the slot stays open then, and another scheduler runs the job again at
// its next run. Other errors are those of [once.Do]. A job runs again if its process dies or it
// loses its lock, so it must be repeatable.
//
// A job with Once does not need a [Locker]. If the scheduler has one, pass
// gocron.WithDisabledDistributedJobLocker(true) to NewJob. Otherwise the Locker holds the lock
// of the job's name around the task, and Once waits for that lock in vain. The Locker then
// records that the job has run at that time, although it has not.
//
// Once panics if c or job is nil, and if d is not greater than zero.
func Once(c *zklock.Client, name string, d time.Duration, job func(ctx context.Context) error, opts ...Option) func(ctx context.Context) error {
	if c == nil || job == nil {
		panic("gocronlock: Once with a nil argument: pass a Client and the job")
	}
	s := newSettings(append([]Option{WithSlots(d)}, opts...))
	return func(ctx context.Context) error {
		if _, err := once.Do(ctx, c, s.prefix+name, slotOf(s.now(), s.slots), job, zklock.WithWait(s.waits()), zklock.WithMaxHold(s.hold)); err != nil {
			return fmt.Errorf("gocronlock: %w", err)
		}
		return nil
	}
}
