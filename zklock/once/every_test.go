package once_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

// Of a fleet, one process runs each slot, when it begins. The first slot is the present one.
func TestEveryRunsEachSlotOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		until(t, "08:20")
		for i := range 5 {
			every(t, d, i, connect(t, e.Connector()), nil)
		}
		until(t, "12:30")
		same(t, "slots", d.ran(), "08:00", "09:00", "10:00", "11:00", "12:00")
		runs := d.all()
		for i, r := range runs {
			if i > 0 && (r.after > time.Second || r.token.Compare(runs[i-1].token) <= 0) {
				t.Errorf("a slot has run late, or with an older token: %+v after %+v", r, runs[i-1])
			}
		}
		if lines := d.records(); len(lines) > 0 {
			t.Errorf("%d lines, such as %q", len(lines), lines[0].Message)
		}
	})
}

// rules are the rules for missed slots, and what each of them does at 12:30, when the slots of
// 09:00, 10:00 and 11:00 were missed.
var rules = []struct {
	rule once.Missed
	ran  []string
	line string
}{
	{once.Skip, []string{"08:00", "12:00", "13:00"}, "missed=3 first=09:00 last=11:00 rule=skip skipped=3 next=12:00 "},
	{once.RunLatest, []string{"08:00", "11:00", "12:00", "13:00"}, "missed=3 first=09:00 last=11:00 rule=run latest skipped=2 next=11:00 "},
	{once.RunAll, []string{"08:00", "09:00", "10:00", "11:00", "12:00", "13:00"}, "missed=3 first=09:00 last=11:00 rule=run all skipped=0 next=09:00 "},
}

// Slots that were missed follow the rule. One process logs them, in one line, before a later slot
// runs. With RunAll there is one more line if another process goes on: it logs the missed slots
// that are left.
func TestEveryAfterMissedSlots(t *testing.T) {
	for name, miss := range map[string]func(t *testing.T, e *memdriver.Ensemble, start func(processes int) []*running){
		"the ensemble was down": func(t *testing.T, e *memdriver.Ensemble, start func(int) []*running) {
			start(1)
			until(t, "08:50")
			e.Partition(outage...)
			until(t, "12:30")
			e.Heal()
		},
		"all processes were down": func(t *testing.T, e *memdriver.Ensemble, start func(int) []*running) {
			for _, r := range start(3) {
				if err := r.end(); !errors.Is(err, context.Canceled) {
					t.Errorf("Every has returned %v", err)
				}
			}
			until(t, "12:30")
			start(1)
		},
	} {
		for _, rule := range rules {
			t.Run(name+", "+rule.rule.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e, d := memdriver.New(), &diary{}
					until(t, "08:10")
					miss(t, e, func(processes int) (started []*running) {
						for i := range processes {
							started = append(started, every(t, d, i, connect(t, e.Connector()), nil, once.WithMissed(rule.rule)))
						}
						return started
					})
					until(t, "13:30")
					same(t, "slots", d.ran(), rule.ran...)
					same(t, "lines on missed slots", d.logged(lineMissed), rule.line)
				})
			})
		}
	}
}

// While the ensemble is down from the start, the slots since the start are missed, and none before.
func TestEveryThatStartsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		until(t, "08:10")
		e.Partition(outage...)
		every(t, d, 0, connect(t, e.Connector()), nil, once.WithMissed(once.RunAll))
		until(t, "10:10")
		e.Heal()
		until(t, "10:30")
		same(t, "slots", d.ran(), "08:00", "09:00", "10:00")
		same(t, "lines on missed slots", d.logged(lineMissed), "missed=2 first=08:00 last=09:00 rule=run all skipped=0 next=08:00 ")
		if n := len(d.logged(lineUnable)); n < 60 || n > 200 {
			t.Errorf("%d lines on failures of two hours, want one for each try, about every minute", n)
		}
	})
}

// A job that takes longer than a period misses slots. Processes that wait for it do not take its
// slot for a missed one.
func TestEveryWithLongJobs(t *testing.T) {
	for _, c := range []struct {
		rule once.Missed
		ran  []string
		line string
	}{
		{once.Skip, []string{"08:00", "10:00", "11:00"}, "missed=1 first=09:00 last=09:00 rule=skip skipped=1 next=10:00 "},
		{once.RunLatest, []string{"08:00", "09:00", "10:00", "11:00"}, "missed=1 first=09:00 last=09:00 rule=run latest skipped=0 next=09:00 "},
		{once.RunAll, []string{"08:00", "09:00", "10:00", "11:00"}, "missed=1 first=09:00 last=09:00 rule=run all skipped=0 next=09:00 "},
	} {
		t.Run(c.rule.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, d := memdriver.New(), &diary{}
				until(t, "08:00")
				for i := range 3 {
					every(t, d, i, connect(t, e.Connector()), func(_ context.Context, slot time.Time) error {
						if slot.Hour() == 8 {
							time.Sleep(2*time.Hour + 15*time.Minute)
						}
						return nil
					}, once.WithMissed(c.rule))
				}
				until(t, "11:30")
				same(t, "slots", d.ran(), c.ran...)
				same(t, "lines on missed slots", d.logged(lineMissed), c.line)
			})
		})
	}
}

// If the process that runs a slot dies, or loses its lock, another one runs it, within the slot.
func TestEveryTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		until(t, "08:00")
		for i := range 3 {
			every(t, d, i, connect(t, e.Connector()), func(ctx context.Context, slot time.Time) error {
				if len(d.all()) == 1 {
					found, err := connect(t, e.Connector()).Contenders(t.Context(), "x")
					if err != nil || len(found) == 0 {
						t.Errorf("%+v, %v", found, err)
						return nil
					}
					e.Partition(memdriver.AroundSession(found[0].Session))
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return nil
			})
		}
		until(t, "09:30")
		same(t, "slots", d.ran(), "08:00", "09:00")
		if runs := d.all(); len(runs) != 3 || runs[0].process == runs[1].process || runs[1].after > time.Minute {
			t.Errorf("runs %+v, want one by another process within a minute", runs)
		}
		same(t, "failures", d.logged(lineFailed), "slot=08:00 call=1 ")
	})
}

// A clock that is ahead runs slots early. No slot runs twice, and none is missed.
func TestEveryWithClocksThatDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		until(t, "08:10")
		every(t, d, 0, connect(t, e.Connector()), nil)
		ahead := func(by time.Duration) once.Option {
			return once.WithClock(func() time.Time { return time.Now().Add(by) })
		}
		early := every(t, d, 1, connect(t, e.Connector()), nil, ahead(20*time.Minute))
		every(t, d, 2, connect(t, e.Connector()), nil, ahead(-20*time.Minute))
		until(t, "11:50")
		same(t, "slots", d.ran(), "08:00", "09:00", "10:00", "11:00", "12:00")
		for _, r := range d.all()[1:] {
			if r.process != 1 || r.after > -19*time.Minute {
				t.Errorf("%+v, want a run by the early clock", r)
			}
		}
		_ = early.end()
		until(t, "13:50")
		same(t, "slots", d.ran()[5:], "13:00")
		if last := d.all()[5]; last.process != 0 || last.after > time.Second {
			t.Errorf("%+v, want a run by the clock that is right", last)
		}
		same(t, "lines on missed slots", d.logged(lineMissed))
	})
}

// If the ledger has a slot far ahead of the clock, the log has one line about that. No slot runs
// before the clock has passed the ledger's slot; later slots run as ever.
func TestEveryWithALedgerThatIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		c := connect(t, e.Connector())
		do(t, c, "x", "2000-01-01T12:00:00Z", nil, true)
		until(t, "08:10")
		every(t, d, 0, c, nil)
		until(t, "14:10")
		same(t, "slots", d.ran(), "13:00", "14:00")
		same(t, "lines", d.logged("once: the ledger is ahead of the clock; no slot runs before that time"), "ledger=12:00 slot=08:00 ")
	})
}

// A program has called Do before, with slots in RFC 3339. Every goes on with the first slot of its
// own after the last of these, whether that was one of its slots or lies between two of them.
func TestEveryGoesOnWithALedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		c := connect(t, e.Connector())
		if err := c.Ping(t.Context()); err != nil { // an ensemble that was idle would remove empty containers during the first uses
			t.Fatal(err)
		}
		until(t, "08:10")
		time.Sleep(time.Second) // the ensemble removes them at the full minute, and an acquisition then pauses
		do(t, c, "x", "2000-01-01T06:25:00Z", nil, true)
		every(t, d, 0, c, nil, once.WithMissed(once.RunAll))
		same(t, "slots", d.ran(), "07:00", "08:00")
		do(t, c, "x", "2000-01-01T09:00:00Z", nil, true)
		until(t, "10:10")
		same(t, "slots", d.ran(), "07:00", "08:00", "10:00")
		if got := slices.Compact(d.logged(lineMissed)); len(got) != 1 {
			t.Errorf("lines on missed slots: %q, want the one for 07:00", got)
		}
	})
}

// Every ends with its context, and returns the context's cause. If the job succeeds after the end
// of the context, its slot is recorded. The end is not logged as a failure.
func TestEveryEndsWithItsContext(t *testing.T) {
	stop := errors.New("the program ends")
	for what, c := range map[string]struct {
		work func(ctx context.Context, _ time.Time) error
		runs []string // of a second process
	}{
		"between two slots":          {nil, []string{"08:00"}},
		"in a job that ends with it": {func(ctx context.Context, _ time.Time) error { <-ctx.Done(); return ctx.Err() }, []string{"08:00"}},
		"in a job that ends with the cause": {func(ctx context.Context, _ time.Time) error { <-ctx.Done(); return context.Cause(ctx) },
			[]string{"08:00"}},
		"in a job that goes on": {func(context.Context, time.Time) error { time.Sleep(20 * time.Minute); return nil }, []string{"08:00"}},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, d := memdriver.New(), &diary{}
				until(t, "08:10")
				r := every(t, d, 0, connect(t, e.Connector()), c.work)
				waiting := every(t, d, 1, connect(t, e.Connector()), nil)
				until(t, "08:20")
				r.stop(stop)
				<-r.done
				if !errors.Is(r.err, context.Canceled) || !errors.Is(r.err, stop) {
					t.Errorf("Every has returned %v, want %v and its cause", r.err, context.Canceled)
				}
				until(t, "08:50")
				same(t, "slots", d.ran(), c.runs...)
				if err := waiting.end(); !errors.Is(err, context.Canceled) {
					t.Errorf("Every has returned %v", err)
				}
				if lines := d.records(); len(lines) > 0 {
					t.Errorf("%d lines, such as %q", len(lines), lines[0].Message)
				}
			})
		})
	}
}

// A panic of the job leaves Every with the slot open.
func TestEveryWithAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := memdriver.New(), &diary{}
		func() {
			defer func() {
				if r := recover(); r != errJob {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = once.Every(t.Context(), connect(t, e.Connector()), "x", time.Hour, func(context.Context, time.Time) error { panic(errJob) })
		}()
		every(t, d, 0, connect(t, e.Connector()), nil)
		same(t, "slots", d.ran(), "00:00")
	})
}

// An error that does not pass ends Every at once.
func TestEveryEndsWithErrorsThatDoNotPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector())
		closed := connect(t, e.Connector())
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
		do(t, c, "dates", "2000-01-01", nil, true)
		do(t, c, "zones", "2000-01-01T00:00:00+01:00", nil, true)
		held, err := c.Mutex("held").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release(t.Context())
		carrying, cancel := held.Context(t.Context())
		defer cancel()
		gone, err := c.Mutex("gone").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lost, cancel := gone.Context(context.Background())
		defer cancel()
		holders, err := c.Contenders(t.Context(), "gone")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Break(t.Context(), "gone", holders[0].Node); err != nil {
			t.Fatal(err)
		}
		<-gone.Done()
		job := func(context.Context, time.Time) error { t.Error("the job ran"); return nil }
		for what, c := range map[string]struct {
			ctx    context.Context
			client *zklock.Client
			name   string
			period time.Duration
			job    func(context.Context, time.Time) error
			option once.Option
			want   error
		}{
			"no job":                {t.Context(), c, "x", time.Hour, nil, nil, zklock.ErrMisuse},
			"no period":             {t.Context(), c, "x", 0, job, nil, zklock.ErrMisuse},
			"a negative period":     {t.Context(), c, "x", -time.Hour, job, nil, zklock.ErrMisuse},
			"parts of a second":     {t.Context(), c, "x", 1500 * time.Millisecond, job, nil, zklock.ErrMisuse},
			"an unknown rule":       {t.Context(), c, "x", time.Hour, job, once.WithMissed(once.RunAll + 1), zklock.ErrMisuse},
			"negative calls":        {t.Context(), c, "x", time.Hour, job, once.WithRetry(-1, 0), zklock.ErrMisuse},
			"a negative pause":      {t.Context(), c, "x", time.Hour, job, once.WithRetry(0, -1), zklock.ErrMisuse},
			"no client":             {t.Context(), nil, "x", time.Hour, job, nil, zklock.ErrMisuse},
			"a closed client":       {t.Context(), closed, "x", time.Hour, job, nil, zklock.ErrClosed},
			"an invalid name":       {t.Context(), c, "a//b", time.Hour, job, nil, zklock.ErrInvalidName},
			"a ledger with dates":   {t.Context(), c, "dates", time.Hour, job, nil, zklock.ErrConflict},
			"a ledger with zones":   {t.Context(), c, "zones", time.Hour, job, nil, zklock.ErrConflict},
			"a lock of its context": {carrying, c, "held", time.Hour, job, nil, zklock.ErrDeadlock},
			"a lost lock of it":     {context.WithoutCancel(lost), c, "gone", time.Hour, job, nil, zklock.ErrLost},
		} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(c.ctx, time.Hour)
			defer cancel()
			if err := once.Every(ctx, c.client, c.name, c.period, c.job, c.option); !errors.Is(err, c.want) || time.Since(began) > time.Second {
				t.Errorf("%s: %v after %v, want %v at once", what, err, time.Since(began), c.want)
			}
		}
	})
}

// A client that is closed between two slots ends Every soon. One that is closed while the job runs
// ends the job's context, and then Every.
func TestEveryEndsWithItsClient(t *testing.T) {
	for what, work := range map[string]func(context.Context, time.Time) error{
		"between two slots": nil,
		"in a job":          func(ctx context.Context, _ time.Time) error { <-ctx.Done(); return context.Cause(ctx) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, memdriver.New().Connector())
				r := every(t, &diary{}, 0, c, work)
				closed := time.Now()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if err := r.returned(t); !errors.Is(err, zklock.ErrClosed) || time.Since(closed) > 2*time.Second {
					t.Errorf("Every has returned %v after %v, want %v within two seconds", err, time.Since(closed), zklock.ErrClosed)
				}
			})
		})
	}
}

// With WithZone a fleet runs each day once, at its time there, when clocks are set forward and back, and after a restart.
func TestEveryOfDaysInAZone(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skipf("this system has no rules of zones: %v", err)
	}
	for from, want := range map[string][]string{
		"2026-03-27T12:00:00Z": {"03-27 02:00 +0100", "03-28 02:00 +0100", "03-29 03:00 +0200", "03-30 02:00 +0200"},
		"2026-10-23T12:00:00Z": {"10-23 02:00 +0200", "10-24 02:00 +0200", "10-25 02:00 +0100", "10-26 02:00 +0100"},
	} {
		synctest.Test(t, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, from)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			clock := func() time.Time { return at.Add(60 * time.Since(start)) } // an hour in a minute
			e, slots := memdriver.New(), make(chan string, 100)
			run := func() (stop func()) {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				c := connect(t, e.Connector())
				go func() {
					defer close(done)
					_ = once.Every(ctx, c, "x", 24*time.Hour, func(_ context.Context, slot time.Time) error {
						slots <- slot.Format("01-02 15:04 -0700")
						if late := clock().Sub(slot); late > 2*time.Minute && len(slots) > 1 {
							t.Errorf("%v has run %v late", slot, late)
						}
						return nil
					}, once.WithZone(zone, 2*time.Hour), once.WithClock(clock))
				}()
				return func() { cancel(); <-done }
			}
			first, second := run(), run()
			time.Sleep(40 * time.Minute)
			first()
			third := run() // as after a deployment
			time.Sleep(35 * time.Minute)
			second()
			third()
			close(slots)
			var got []string
			for s := range slots {
				got = append(got, s)
			}
			same(t, "slots", got, want...)
		})
	}
}
