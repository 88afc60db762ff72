// Package gocronlock runs the jobs of gocron in one process of a fleet at a time.
//
// [Locker] is for schedulers that all run the jobs: the first that comes runs a job, and the
// others skip it. A lock alone does not make a short job run once: a scheduler that comes later
// finds the lock free again. With [WithSlots] a job runs once in each slot of time, however
// short it is and however the clocks differ within half a slot:
//
//	locker := gocronlock.NewLocker(client, gocronlock.WithSlots(time.Minute))
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// [Once] does the same for one job, with a context that ends when the lock is lost. A job that
// returns an error runs again, by the next scheduler that comes in the slot:
//
//	task := gocron.NewTask(gocronlock.Once(client, "report", time.Minute, report))
//	job, err := scheduler.NewJob(gocron.CronJob("0 * * * *", false), task)
//
// [Elector] is for schedulers of which one, the leader, runs all jobs.
package gocronlock
