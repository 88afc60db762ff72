package gocronlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/zklock/go-zklock/contrib/gocronlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/once"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// A slot is done even if gocron has skipped the job after Lock, or the job has failed or
// panicked: gocron does not pass that on to a Locker.
func TestSlotCountsWhateverTheJobDoes(t *testing.T) {
	broken := errors.New("broken")
	for what, x := range map[string]struct {
		task   func() error
		option gocron.EventListener
	}{
		"fails":   {func() error { return broken }, gocron.AfterJobRunsWithError(func(uuid.UUID, string, error) {})},
		"panics":  {func() error { panic("broken") }, gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {})},
		"skipped": {func() error { t.Error("the job ran"); return nil }, gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error { return broken })},
	} {
		t.Run(what, func(t *testing.T) {
			c, _ := zklocktest.New(t)
			now := time.Now()
			locker := gocronlock.NewLocker(c, gocronlock.WithSlots(time.Hour), gocronlock.WithClock(func() time.Time { return now }))
			unlocked := make(chan struct{}, 1)
			scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(watched{locker, unlocked}))
			if err != nil {
				t.Fatal(err)
			}
			_, err = scheduler.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(x.task), gocron.WithName("report"), gocron.WithEventListeners(x.option))
			if err != nil {
				t.Fatal(err)
			}
			scheduler.Start()
			<-unlocked
			if err := scheduler.Shutdown(); err != nil {
				t.Error(err)
			}
			if _, err := locker.Lock(t.Context(), "report"); !errors.Is(err, gocronlock.ErrDone) {
				t.Errorf("Lock in the same slot: %v, want ErrDone", err)
			}
		})
	}
}

// The lock of a scheduler's Locker is around the task, so that Once never gets the lock of the same
// name. A job with Once does without the Locker.
func TestOnceUnderALocker(t *testing.T) {
	for what, opts := range map[string][]gocronlock.Option{"plain": nil, "slots": {gocronlock.WithSlots(time.Hour)}} {
		for _, disabled := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, job without the Locker: %v", what, disabled), func(t *testing.T) {
				c, _ := zklocktest.New(t)
				scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(gocronlock.NewLocker(c, opts...)))
				if err != nil {
					t.Fatal(err)
				}
				ran := false
				task := gocronlock.Once(c, "report", time.Hour, func(context.Context) error { ran = true; return nil }, gocronlock.WithWait(0))
				ended := make(chan error, 1)
				_, err = scheduler.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(task), gocron.WithName("report"),
					gocron.WithDisabledDistributedJobLocker(disabled), gocron.WithEventListeners(
						gocron.AfterJobRuns(func(uuid.UUID, string) { ended <- nil }),
						gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { ended <- err })))
				if err != nil {
					t.Fatal(err)
				}
				scheduler.Start()
				if err := <-ended; ran != disabled || disabled && err != nil || !disabled && !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("ran: %v, %v, want the job to run only without the Locker, and ErrNotAcquired otherwise", ran, err)
				}
				if err := scheduler.Shutdown(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// If the process that runs the job dies during a slot no longer than two session timeouts, no other
// process runs the job in that slot: the others wait for the lock for half a slot only. WithWait
// can make them wait longer.
func TestSlotsThatAreMissed(t *testing.T) {
	for what, x := range map[string]struct {
		slot time.Duration
		opts []gocronlock.Option
		want error
	}{
		"short":              {59 * time.Second, nil, zklock.ErrNotAcquired},
		"short, with a wait": {59 * time.Second, []gocronlock.Option{gocronlock.WithWait(40 * time.Second)}, nil},
		"long":               {3 * time.Minute, nil, nil},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, e := zklocktest.New(t)
				first, second := gocronlock.NewLocker(c, gocronlock.WithSlots(x.slot)), gocronlock.NewLocker(client(t, e), append(x.opts, gocronlock.WithSlots(x.slot))...)
				dead, err := first.Lock(t.Context(), "report")
				if err != nil {
					t.Fatal(err)
				}
				thaw := e.Freeze(e.Sessions()[0]) // as good as killed
				lock, err := second.Lock(t.Context(), "report")
				if !errors.Is(err, x.want) {
					t.Errorf("Lock: %v, want %v", err, x.want)
				}
				if err == nil {
					_ = lock.Unlock(t.Context())
				}
				thaw()
				_ = dead.Unlock(t.Context())
			})
		})
	}
}

// A scheduler whose clock is far ahead makes the slots before impossible, until Forget.
func TestClockFarAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		good := gocronlock.NewLocker(c, gocronlock.WithSlots(time.Minute))
		ahead := gocronlock.NewLocker(client(t, e), gocronlock.WithSlots(time.Minute), gocronlock.WithClock(func() time.Time { return time.Now().Add(time.Hour) }))
		run := func(l *gocronlock.Locker) error {
			lock, err := l.Lock(t.Context(), "report")
			if err != nil {
				return err
			}
			return lock.Unlock(t.Context())
		}
		if err := run(ahead); err != nil {
			t.Fatal(err)
		}
		if err := run(good); !errors.Is(err, gocronlock.ErrDone) {
			t.Errorf("Lock in a slot before: %v, want ErrDone", err)
		}
		if err := once.Forget(t.Context(), c, "cron/report"); err != nil {
			t.Fatal(err)
		}
		if err := run(good); err != nil {
			t.Errorf("Lock after Forget: %v", err)
		}
	})
}
