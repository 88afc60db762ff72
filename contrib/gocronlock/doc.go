// Package gocronlock runs the jobs of gocron in one process of a fleet at a time.
//
// [Locker] is for schedulers that all run the jobs: the first to get the lock runs a job, and
// the others skip it. A lock alone does not make a short job run once: a later scheduler finds
// the lock free again. With [WithSlots] a job runs once in each slot of time, however short it
// is and however the clocks differ within half a slot:
//
//	locker := gocronlock.NewLocker(client, gocronlock.WithSlots(time.Minute))
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// [Once] does the same for one job, with a context that ends when the lock is lost. If a job
// returns an error, the next scheduler in the same slot runs it again:
//
//	task := gocron.NewTask(gocronlock.Once(client, "report", time.Minute, report))
//	job, err := scheduler.NewJob(gocron.CronJob("0 * * * *", false), task)
//
// [Elector] elects one of the schedulers, the leader, to run all jobs.
package gocronlock
