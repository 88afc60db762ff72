package gocronlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/zklock/go-zklock/contrib/gocronlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

// replicas starts n schedulers with a job that is due once, at the same time, and shuts them
// down when each has run the job or has skipped it.
func replicas(n int, task any, option ...gocron.SchedulerOption) {
	decided := make(chan struct{}, 2*n)
	var schedulers []gocron.Scheduler
	for range n {
		s, err := gocron.NewScheduler(option...)
		if err != nil {
			panic(err)
		}
		schedulers = append(schedulers, s)
		_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(task), gocron.WithName("report"),
			gocron.WithEventListeners(
				gocron.AfterJobRuns(func(uuid.UUID, string) { decided <- struct{}{} }),
				gocron.AfterLockError(func(uuid.UUID, string, error) { decided <- struct{}{} })))
		if err != nil {
			panic(err)
		}
		s.Start()
		<-decided // one after the other: without slots, each would run the job
	}
	for _, s := range schedulers {
		if err := s.Shutdown(); err != nil {
			panic(err)
		}
	}
}

// Three schedulers come one after the other, and the first one runs the job.
func ExampleNewLocker() {
	client, err := zklock.Open("mem://") // in production zk://host:port,host:port/shop
	if err != nil {
		panic(err)
	}
	defer client.Close()

	now := time.Now() // in production without WithClock
	locker := gocronlock.NewLocker(client, gocronlock.WithSlots(time.Minute),
		gocronlock.WithPrefix("jobs/"), gocronlock.WithClock(func() time.Time { return now }))
	replicas(3, func() { fmt.Println("the report is written") }, gocron.WithDistributedLocker(locker))
	// Output: the report is written
}

// A job whose context ends when the lock is lost.
func ExampleOnce() {
	client, err := zklock.Open("mem://") // in production zk://host:port,host:port/shop
	if err != nil {
		panic(err)
	}
	defer client.Close()

	now := time.Now() // in production without WithClock
	replicas(3, gocronlock.Once(client, "report", time.Hour, func(ctx context.Context) error {
		lock, _ := zklock.FromContext(ctx)
		fmt.Println("the report is written under", lock.Name())
		return nil
	}, gocronlock.WithWait(time.Minute), gocronlock.WithMaxHold(time.Hour), gocronlock.WithClock(func() time.Time { return now })))
	// Output: the report is written under cron/report
}

// The leader runs all jobs.
func ExampleNewElector() {
	client, err := zklock.Open("mem://") // in production zk://host:port,host:port/shop
	if err != nil {
		panic(err)
	}
	defer client.Close()

	elector := gocronlock.NewElector(election.New(client, "cron"))
	defer elector.Close() // after the shutdown of the scheduler
	ran := make(chan struct{}, 1)
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		panic(err)
	}
	defer scheduler.Shutdown()
	_, err = scheduler.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(func(ctx context.Context) error {
		return elector.Do(ctx, func(ctx context.Context) error { // ctx ends when the term does
			select {
			case ran <- struct{}{}:
			default:
			}
			return nil
		})
	}))
	if err != nil {
		panic(err)
	}
	scheduler.Start()
	<-ran
	fmt.Println("the leader runs the job")
	// Output: the leader runs the job
}
