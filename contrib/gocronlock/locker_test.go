package gocronlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/contrib/gocronlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// client returns another client of an ensemble.
func client(t *testing.T, e *memdriver.Ensemble) *zklock.Client {
	t.Helper()
	c, err := zklock.OpenConnector(e.Connector())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// One locker at a time gets the lock of a job, and the others skip it at once.
func TestLockerExcludes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		first, second := gocronlock.NewLocker(c), gocronlock.NewLocker(client(t, e), gocronlock.WithPrefix("cron/"))
		lock, err := first.Lock(t.Context(), "report")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := second.Lock(t.Context(), "report"); !errors.Is(err, zklock.ErrNotAcquired) || time.Since(began) != 0 {
			t.Errorf("the second Lock, after %v: %v, want ErrNotAcquired at once", time.Since(began), err)
		}
		other, err := second.Lock(t.Context(), "backup")
		if err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := errors.Join(lock.Unlock(ended), other.Unlock(ended)); err != nil {
			t.Errorf("Unlock with a context that has ended: %v", err)
		}
		if lock, err = second.Lock(t.Context(), "report"); err != nil {
			t.Fatal(err)
		}
		if err := lock.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// With slots a job runs once in each, in whatever order the schedulers come.
func TestLockerSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		lockers := []*gocronlock.Locker{
			gocronlock.NewLocker(c, gocronlock.WithSlots(time.Minute)),
			gocronlock.NewLocker(client(t, e), gocronlock.WithSlots(time.Minute)),
		}
		run := func(i int) error {
			lock, err := lockers[i].Lock(t.Context(), "report")
			if err != nil {
				return err
			}
			// A second Unlock returns what the first one did.
			return errors.Join(lock.Unlock(t.Context()), lock.Unlock(t.Context()))
		}
		for slot := range 5 {
			if err := run(slot % 2); err != nil {
				t.Fatal(err)
			}
			for _, i := range []int{0, 1} {
				if err := run(i); !errors.Is(err, gocronlock.ErrDone) {
					t.Errorf("slot %d: locker %d after the run: %v, want ErrDone", slot, i, err)
				}
			}
			time.Sleep(29 * time.Second) // of virtual time
			if err := run(slot % 2); !errors.Is(err, gocronlock.ErrDone) {
				t.Errorf("slot %d, 29 s later: %v, want ErrDone", slot, err)
			}
			time.Sleep(31 * time.Second)
		}
	})
}

// A locker waits for the scheduler that runs the job. If that one loses its lock, this one runs
// the job.
func TestLockerSlotsTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		first := gocronlock.NewLocker(c, gocronlock.WithSlots(time.Hour))
		second := gocronlock.NewLocker(client(t, e), gocronlock.WithSlots(time.Hour), gocronlock.WithWait(30*time.Minute))
		lock, err := first.Lock(t.Context(), "report")
		if err != nil {
			t.Fatal(err)
		}
		type result struct {
			unlock func(context.Context) error
			err    error
		}
		got := make(chan result, 1)
		go func() {
			lock, err := second.Lock(t.Context(), "report")
			if err != nil {
				got <- result{err: err}
				return
			}
			got <- result{lock.Unlock, nil}
		}()
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("the second Lock did not wait")
		}
		e.ExpireAll()
		r := <-got
		if r.err != nil {
			t.Fatal(r.err)
		}
		if err := lock.Unlock(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Unlock of the first: %v, want ErrLost", err)
		}
		if err := r.unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := first.Lock(t.Context(), "report"); !errors.Is(err, gocronlock.ErrDone) {
			t.Errorf("Lock after the job has run: %v, want ErrDone", err)
		}
	})
}

// While another scheduler runs the job, a locker waits as long as its options say, by default for
// half a slot.
func TestLockerWaits(t *testing.T) {
	type options = []gocronlock.Option
	for what, x := range map[string]struct {
		opts options
		want time.Duration
	}{
		"plain":              {nil, 0},
		"plain, with a wait": {options{gocronlock.WithWait(time.Minute)}, time.Minute},
		"slots":              {options{gocronlock.WithSlots(time.Hour)}, 30 * time.Minute},
		"slots, with a wait": {options{gocronlock.WithSlots(time.Hour), gocronlock.WithWait(time.Minute)}, time.Minute},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, e := zklocktest.New(t)
				other, err := client(t, e).Mutex("cron/report").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer other.Release(t.Context())
				began := time.Now()
				if _, err := gocronlock.NewLocker(c, x.opts...).Lock(t.Context(), "report"); !errors.Is(err, zklock.ErrNotAcquired) || time.Since(began) != x.want {
					t.Errorf("Lock: %v after %v, want ErrNotAcquired after %v", err, time.Since(began), x.want)
				}
				if strings.HasPrefix(what, "plain") { // Once has slots
					return
				}
				began = time.Now()
				job := gocronlock.Once(c, "report", time.Hour, func(context.Context) error { t.Error("the job ran"); return nil }, x.opts...)
				if err := job(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) || time.Since(began) != x.want {
					t.Errorf("Once: %v after %v, want ErrNotAcquired after %v", err, time.Since(began), x.want)
				}
			})
		})
	}
}

// Without an ensemble the job does not run.
func TestLockerUnavailable(t *testing.T) {
	for what, opts := range map[string][]gocronlock.Option{"plain": nil, "slots": {gocronlock.WithSlots(time.Hour)}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, e := zklocktest.New(t)
				e.Partition(memdriver.AroundClients(0))
				if _, err := gocronlock.NewLocker(c, append(opts, gocronlock.WithWait(time.Hour))...).Lock(t.Context(), "report"); !errors.Is(err, zklock.ErrUnavailable) {
					t.Errorf("Lock: %v, want ErrUnavailable", err)
				}
				e.Heal(memdriver.AroundClients(0))
			})
		})
	}
}

// A job that fails runs again in its slot, and one that has succeeded does not.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		broken := errors.New("broken")
		runs := 0
		var fails error
		job := func(ctx context.Context) error {
			if l, ok := zklock.FromContext(ctx); !ok || l.Name() != "jobs/report" {
				t.Error("the context of the job does not carry its lock")
			}
			runs++
			return fails
		}
		first := gocronlock.Once(c, "report", time.Hour, job, gocronlock.WithPrefix("jobs/"))
		second := gocronlock.Once(client(t, e), "report", time.Hour, job, gocronlock.WithPrefix("jobs/"))
		fails = broken
		if err := first(t.Context()); !errors.Is(err, broken) || runs != 1 {
			t.Errorf("the job that fails: %v after %d runs", err, runs)
		}
		fails = nil
		for i, f := range []func(context.Context) error{second, first, second} {
			if err := f(t.Context()); err != nil || runs != 2 {
				t.Errorf("call %d: %v after %d runs, want 2", i, err, runs)
			}
		}
		// A scheduler with its own clock is in the slot that its clock says.
		late := gocronlock.Once(c, "report", time.Hour, job, gocronlock.WithPrefix("jobs/"), gocronlock.WithClock(func() time.Time { return time.Now().Add(time.Hour) }))
		if err := late(t.Context()); err != nil || runs != 3 {
			t.Errorf("in the next slot: %v after %d runs, want 3", err, runs)
		}
	})
}

// The context of the job ends with the loss.
func TestOnceLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		job := gocronlock.Once(c, "report", time.Hour, func(ctx context.Context) error {
			e.ExpireAll()
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), zklock.ErrLost) {
				t.Errorf("the context ended with %v, want the loss", context.Cause(ctx))
			}
			return nil
		})
		if err := job(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("the job: %v, want the loss", err)
		}
	})
}

func TestMistakesPanic(t *testing.T) {
	c, _ := zklocktest.New(t)
	for what, f := range map[string]func(){
		"no client":   func() { gocronlock.NewLocker(nil) },
		"no job":      func() { gocronlock.Once(c, "report", time.Hour, nil) },
		"no slot":     func() { gocronlock.WithSlots(0) },
		"no clock":    func() { gocronlock.WithClock(nil) },
		"no election": func() { gocronlock.NewElector(nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			f()
		}()
	}
}
