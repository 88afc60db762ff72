package once_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

// failsIn returns a job that fails in the slot of an hour, at its first calls there, as many as
// times says; if times is 0, at all of them.
func failsIn(hour, times int) func(context.Context, time.Time) error {
	calls := 0
	return func(_ context.Context, slot time.Time) error {
		if slot.Hour() != hour {
			return nil
		}
		if calls++; times > 0 && calls > times {
			return nil
		}
		return errJob
	}
}

// A slot that fails runs again, after pauses that grow. Each failure has a line.
func TestEveryRetriesASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		until(t, "08:00")
		every(t, d, 0, connect(t, e.Connector()), failsIn(9, 3))
		until(t, "10:30")
		same(t, "slots", d.ran(), "08:00", "09:00", "10:00")
		same(t, "failures", d.logged(lineFailed), "slot=09:00 call=1 ", "slot=09:00 call=2 ", "slot=09:00 call=3 ")
		runs := d.all()
		if len(runs) != 6 {
			t.Fatalf("%d runs, want 6: %+v", len(runs), runs)
		}
		for i, longest := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			if pause := runs[i+2].after - runs[i+1].after; pause < longest/2 || pause > longest+time.Second/10 {
				t.Errorf("pause %d: %v, want from %v to %v", i+1, pause, longest/2, longest)
			}
		}
	})
}

// If the job fails until its slot ends, the slot is a missed one from then on. With RunAll, Every
// goes on with it.
func TestEveryWithASlotThatKeepsFailing(t *testing.T) {
	for _, c := range []struct {
		rule once.Missed
		opts []once.Option
		ran  []string
		line string // the last one on missed slots
		gave []string
	}{
		{once.Skip, nil, []string{"08:00", "10:00", "11:00"}, "missed=1 first=09:00 last=09:00 rule=skip skipped=1 next=10:00 ", nil},
		{once.RunLatest, nil, []string{"08:00", "10:00", "11:00"}, "missed=2 first=09:00 last=10:00 rule=run latest skipped=1 next=10:00 ", nil},
		{once.RunAll, nil, []string{"08:00"}, "missed=2 first=09:00 last=10:00 rule=run all skipped=0 next=09:00 ", nil},
		{once.RunAll, []once.Option{once.WithRetry(3, time.Minute)}, []string{"08:00", "10:00", "11:00"}, "", []string{"slot=09:00 calls=3 "}},
		{once.Skip, []once.Option{once.WithRetry(1, 0)}, []string{"08:00", "10:00", "11:00"}, "", []string{"slot=09:00 calls=1 "}},
	} {
		t.Run(fmt.Sprint(c.rule, " ", len(c.opts)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, d := memdriver.New(), &diary{}
				until(t, "08:00")
				every(t, d, 0, connect(t, e.Connector()), failsIn(9, 0), append(c.opts, once.WithMissed(c.rule))...)
				until(t, "11:30")
				same(t, "slots", d.ran(), c.ran...)
				same(t, "slots given up", d.logged(lineGaveUp), c.gave...)
				if lines := d.logged(lineMissed); len(lines) > 0 && lines[len(lines)-1] != c.line || len(lines) == 0 && c.line != "" {
					t.Errorf("lines on missed slots: %q, want %q as the last", lines, c.line)
				}
				failed := 0
				for _, r := range d.all() {
					if r.err != nil {
						failed++
					}
				}
				if n := len(d.logged(lineFailed)); n != failed {
					t.Errorf("%d lines on failures, want %d", n, failed)
				}
				if most := 60; c.gave == nil && failed < most {
					t.Errorf("%d calls have failed in an hour, want about one a minute", failed)
				}
			})
		})
	}
}

// Each missed slot is in one line of the log only, also if the slot after the missed ones fails and
// is missed too.
func TestEveryLogsAMissedSlotOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		until(t, "08:10")
		every(t, d, 0, connect(t, e.Connector()), failsIn(12, 0))
		until(t, "08:50")
		e.Partition(outage...)
		until(t, "12:30")
		e.Heal()
		until(t, "13:30")
		same(t, "slots", d.ran(), "08:00", "13:00")
		same(t, "lines on missed slots", d.logged(lineMissed),
			"missed=3 first=09:00 last=11:00 rule=skip skipped=3 next=12:00 ", "missed=1 first=12:00 last=12:00 rule=skip skipped=1 next=13:00 ")
	})
}

// The next slot does not wait for the end of a pause.
func TestEveryCutsPausesAtTheNextSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		until(t, "08:00")
		every(t, d, 0, connect(t, e.Connector()), failsIn(8, 0), once.WithRetry(0, 12*time.Hour))
		until(t, "09:30")
		same(t, "slots", d.ran(), "09:00")
		if after := d.all()[1].after; after > time.Second {
			t.Errorf("the next slot has begun %v late", after)
		}
	})
}

// Every returns if a right is missing. That may show only when the job has run and the ledger
// cannot be written.
func TestEveryWithoutRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		app := connect(t, e.As("app", driver.NewSecret("s3cret")), "acl", "creator")
		do(t, app, "x", "1999-12-31T00:00:00Z", nil, true)
		stranger := every(t, d, 0, connect(t, e.Connector()), nil)
		if err := stranger.returned(t); !errors.Is(err, zklock.ErrNoAuth) || len(d.all()) > 0 {
			t.Errorf("Every has returned %v after %d runs, want %v", err, len(d.all()), zklock.ErrNoAuth)
		}
		reader := every(t, d, 1, connect(t, faultdriver.Wrap(e.As("app", driver.NewSecret("s3cret")), onLedger(faultdriver.Fail(driver.ErrNoAuth))), "acl", "creator"), nil)
		if err := reader.returned(t); !errors.Is(err, zklock.ErrNoAuth) || len(d.all()) != 1 {
			t.Errorf("Every has returned %v after %d runs, want %v after one", err, len(d.all()), zklock.ErrNoAuth)
		}
	})
}

// An ephemeral znode above the root is a conflict that passes with its session, so Every goes on. No
// slot runs before that.
func TestEveryGoesOnAfterAnEphemeralRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		s := plain(t, e)
		if _, err := s.Create(t.Context(), "/zklock", nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		r := every(t, d, 0, connect(t, e.Connector()), nil)
		time.Sleep(3 * time.Second)
		if lines := d.logged("once: no slot can begin"); len(d.all()) > 0 || len(lines) == 0 {
			t.Errorf("%d runs and the lines %q while the znode is there, want no run and a line for each failure", len(d.all()), lines)
		}
		if err := s.Close(t.Context()); err != nil { // the znode goes with its session
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		same(t, "slots", d.ran(), "00:00")
		if err := r.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("Every has returned %v, want that it went on until its end", err)
		}
	})
}

// If the job fails, Every calls it again, even if the job's error matches one that would end Every
// as an error of its own requests.
func TestEveryGoesOnWhateverTheJobReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		every(t, d, 0, connect(t, e.Connector()), func(context.Context, time.Time) error {
			if len(d.logged(lineFailed)) == 0 {
				return fmt.Errorf("of another client: %w", zklock.ErrClosed)
			}
			return nil
		})
		time.Sleep(time.Minute)
		same(t, "slots", d.ran(), "00:00")
	})
}

// A fleet with every kind of trouble: each slot runs, or has a line in a log. Once a slot is in the
// ledger, only later slots run.
func TestEveryFleet(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { everyFleet(t, seed) })
		})
	}
}

func everyFleet(t *testing.T, seed uint64) {
	const processes, period, slots = 4, 20 * time.Second, 40
	r := rand.New(rand.NewPCG(seed, 7))
	rule := once.Missed(seed % 3)
	e, d := memdriver.New(), &diary{}
	first := time.Now()
	start := func(i int) *running {
		mine := rand.New(rand.NewPCG(seed, r.Uint64()))
		faults := faultdriver.Random(mine.Uint64(), 0.02, faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.NotSent())
		c := connect(t, faultdriver.Wrap(e.Connector(), faults))
		ahead := time.Duration(mine.Int64N(int64(period / 4)))
		work := func(ctx context.Context, _ time.Time) error {
			long := time.Duration(mine.Int64N(int64(2 * time.Second)))
			if mine.IntN(15) == 0 {
				long = 2 * period
			}
			select {
			case <-time.After(long):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if mine.IntN(4) == 0 {
				return errJob
			}
			return nil
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		p := &running{stop: cancel, done: make(chan struct{})}
		go func() {
			defer close(p.done)
			p.err = once.Every(ctx, c, "x", period, d.job(t, i, work), once.WithLogger(slog.New(d)), once.WithMissed(rule),
				once.WithRetry(3*(i%2), 0), once.WithClock(func() time.Time { return time.Now().Add(ahead) }))
		}()
		return p
	}
	fleet := make([]*running, processes)
	for i := range fleet {
		fleet[i] = start(i)
	}
	for time.Since(first) < slots*period {
		time.Sleep(time.Duration(r.Int64N(int64(2 * period))))
		switch r.IntN(4) {
		case 0: // an outage
			e.Partition(outage...)
			time.Sleep(time.Duration(r.Int64N(int64(4 * period))))
			e.Heal()
		case 1: // a process restarts
			i := r.IntN(processes)
			if err := fleet[i].end(); !errors.Is(err, context.Canceled) {
				t.Errorf("process %d: %v", i, err)
			}
			fleet[i] = start(i)
		case 2:
			if all := e.Sessions(); len(all) > 0 {
				e.Expire(all[r.IntN(len(all))])
			}
		}
	}
	for i, p := range fleet {
		if err := p.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("process %d: %v", i, err)
		}
	}

	runs := d.all()
	slices.SortStableFunc(runs, func(a, b oneRun) int { return a.token.Compare(b.token) })
	settled := make(map[time.Time]bool) // slots that have run, or have a line
	var recorded oneRun                 // the newest one that is certainly in the ledger: after a failure, a process whose clock is behind may run an earlier slot
	for i, run := range runs {
		if !run.slot.After(recorded.slot) || i > 0 && run.token == runs[i-1].token {
			t.Errorf("%+v follows %+v and %+v", run, recorded, runs[max(i, 1)-1])
		}
		if i > 0 && run.slot.Equal(runs[i-1].slot) && runs[i-1].err == nil && !slices.Contains(d.failed(), run.slot) {
			t.Errorf("%+v follows %+v, and no line says why", run, runs[i-1])
		}
		if run.err == nil {
			settled[run.slot] = true
			if !slices.Contains(d.failed(), run.slot) {
				recorded = run
			}
		}
	}
	for _, l := range d.records() {
		at := make(map[string]time.Time)
		l.Attrs(func(a slog.Attr) bool {
			if a.Value.Kind() == slog.KindTime {
				at[a.Key] = a.Value.Time()
			}
			return true
		})
		switch l.Message {
		case lineGaveUp:
			settled[at["slot"]] = true
		case lineMissed:
			for slot := at["first"]; slot.Before(at["next"]); slot = slot.Add(period) {
				settled[slot] = true
			}
		}
	}
	if len(runs) < slots/2 {
		t.Fatalf("only %d runs", len(runs))
	}
	for slot := runs[0].slot; slot.Before(runs[len(runs)-1].slot); slot = slot.Add(period) {
		if !settled[slot] {
			t.Errorf("slot %v has neither run nor a line", slot.Format(time.TimeOnly))
		}
	}
}

// A schedule begins with its first slot, also for a process that calls Every after the job has
// failed in that slot.
func TestEveryRunsTheFirstSlotAlthoughItFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		until(t, "08:10")
		early := func(context.Context, time.Time) error {
			if time.Now().Hour() < 10 {
				return errJob
			}
			return nil
		}
		every(t, d, 0, connect(t, e.Connector()), early, once.WithMissed(once.RunAll))
		until(t, "09:59")
		time.Sleep(59 * time.Second)
		every(t, d, 1, connect(t, e.Connector()), nil, once.WithMissed(once.RunAll))
		until(t, "12:30")
		same(t, "slots", d.ran(), "08:00", "09:00", "10:00", "11:00", "12:00")
	})
}

// The first pause in a slot is short, however long those of the slot before were.
func TestEveryPauseIsShortInANewSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		until(t, "08:10")
		every(t, d, 0, connect(t, e.Connector()), func(context.Context, time.Time) error { return errJob })
		until(t, "09:10")
		var at []time.Time
		for _, r := range d.all() {
			if r.slot.Hour() == 9 {
				at = append(at, r.slot.Add(r.after))
			}
		}
		if len(at) < 2 || at[1].Sub(at[0]) > 2*time.Second {
			t.Errorf("calls at %v, want the second one a second after the first", at)
		}
	})
}

// A job that hangs ends with WithMaxHold, and the slot runs again; without it no slot would ever run.
func TestEveryEndsAJobThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, calls := new(diary), 0
		r := every(t, d, 0, connect(t, memdriver.New().Connector()), func(ctx context.Context, _ time.Time) error {
			if calls++; calls > 1 {
				return nil
			}
			<-ctx.Done()
			if context.Cause(ctx) != zklock.ErrMaxHold {
				t.Errorf("the job's context ended with %v, want ErrMaxHold", context.Cause(ctx))
			}
			return ctx.Err()
		}, once.WithMaxHold(10*time.Minute))
		until(t, "00:11")
		same(t, "slots that have run", d.ran(), "00:00")
		if runs := d.all(); len(runs) != 2 || runs[1].after < 10*time.Minute || runs[1].after > 11*time.Minute {
			t.Errorf("the runs are %v, want a second one after ten minutes", runs)
		}
		_ = r.end()
	})
}
