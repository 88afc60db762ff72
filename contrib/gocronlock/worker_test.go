package gocronlock_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/zklock/go-zklock/contrib/gocronlock"
	"github.com/zklock/go-zklock/internal/testkit/fleet"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

func TestMain(m *testing.M) {
	os.Exit(fleet.Main(m, map[string]fleet.Role{"job": runJob, "due": runDue, "short": runShort, "suspend": runSuspended}))
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
		_, err := m.AwaitIn(ctx)
		if err == nil {
			m.Say("ended")
		}
		return err
	}
	// The slot is the same one for all processes.
	clock := gocronlock.WithClock(func() time.Time { return time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC) })
	var with []gocron.SchedulerOption
	switch mode {
	case "locker":
		with = append(with, gocron.WithDistributedLocker(gocronlock.NewLocker(client)))
	case "slots":
		with = append(with, gocron.WithDistributedLocker(gocronlock.NewLocker(client, gocronlock.WithSlots(time.Hour), clock)))
	case "once":
		job = gocronlock.Once(client, "report", time.Hour, job, clock)
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
