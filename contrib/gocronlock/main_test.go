package gocronlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/zklock/go-zklock/contrib/gocronlock"
	"github.com/zklock/go-zklock/integration_test/fleet"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

func TestMain(m *testing.M) {
	os.Exit(fleet.Main(m, map[string]fleet.Role{"job": runJob, "short": runShort}))
}

// runJob is a process with a job that waits for a line. It tries to run the job every 100 ms.
func runJob(m *fleet.Member) error {
	url, mode := m.Args[0], m.Args[1]
	client, err := zklock.Open(url)
	if err != nil {
		return err
	}
	defer client.Close()
	job := func(ctx context.Context) error {
		m.Say("began")
		line := make(chan error, 1)
		go func() { _, err := m.Await(); line <- err }()
		select {
		case err := <-line:
			m.Say("ended")
			return err
		case <-ctx.Done():
			m.Say("cancelled", context.Cause(ctx).Error())
			return context.Cause(ctx)
		}
	}
	var with []gocron.SchedulerOption
	switch mode {
	case "locker":
		with = append(with, gocron.WithDistributedLocker(gocronlock.NewLocker(client)))
	case "once":
		slot := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC) // the same one for all processes
		job = gocronlock.Once(client, "report", time.Hour, job, gocronlock.WithClock(func() time.Time { return slot }))
	case "elector":
		elector := gocronlock.NewElector(election.New(client, "cron"))
		defer elector.Close()
		with = append(with, gocron.WithDistributedElector(elector))
		work := job
		job = func(ctx context.Context) error { return elector.Do(ctx, work) }
	}
	scheduler, err := gocron.NewScheduler(with...)
	if err != nil {
		return err
	}
	defer scheduler.Shutdown()
	_, err = scheduler.NewJob(gocron.DurationJob(100*time.Millisecond), gocron.NewTask(job), gocron.WithName("report"),
		gocron.WithSingletonMode(gocron.LimitModeReschedule), gocron.WithEventListeners(
			gocron.AfterLockError(func(uuid.UUID, string, error) { m.Say("skipped") }),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) {
				if errors.Is(err, zklock.ErrLost) {
					m.Say("lost", err.Error())
				}
			})))
	if err != nil {
		return err
	}
	scheduler.Start()
	m.Say("ready")
	select {} // until the test kills the process
}

// runShort is a process with a job of a millisecond, every second from a given time on.
func runShort(m *fleet.Member) error {
	args := make([]int, 4)
	for i := range args {
		var err error
		if args[i], err = strconv.Atoi(m.Args[i+1]); err != nil {
			return err
		}
	}
	first := time.UnixMilli(int64(args[0])) // the first slot
	early := time.Duration(args[1]) * time.Millisecond
	last := first.Add(time.Duration(args[2]-1) * time.Second) // the last slot
	client, err := zklock.Open(m.Args[0])
	if err != nil {
		return err
	}
	defer client.Close()
	var opts []gocronlock.Option
	if args[3] == 1 {
		opts = []gocronlock.Option{gocronlock.WithSlots(time.Second), gocronlock.WithClock(func() time.Time {
			if now := time.Now(); now.Before(last) {
				return now
			}
			return last // a scheduler that is stopped for a while gets no further slot
		})}
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(gocronlock.NewLocker(client, opts...)))
	if err != nil {
		return err
	}
	runs := 0
	_, err = scheduler.NewJob(gocron.DurationJob(time.Second), gocron.NewTask(func() {
		<-time.After(time.Millisecond)
		runs++
	}), gocron.WithName("short"), gocron.WithSingletonMode(gocron.LimitModeReschedule),
		gocron.WithStartAt(gocron.WithStartDateTime(first.Add(-early))))
	if err != nil {
		return err
	}
	scheduler.Start()
	<-time.After(time.Until(last.Add(500 * time.Millisecond))) // before the next run of any of the five
	if err := scheduler.Shutdown(); err != nil {               // waits for the job
		return err
	}
	m.Say("ran", fmt.Sprint(runs))
	return nil
}
