package once_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

var dialects = []string{"zklock", "curator", "zk", "kazoo", "latch"}

// A slot runs if it is above all that have run, in any process, and only then.
func TestDoRunsEachSlotOnce(t *testing.T) {
	for _, dialect := range dialects {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			a, b := connect(t, e.Connector(), "dialect", dialect), connect(t, e.Connector(), "dialect", dialect)
			do(t, a, "daily", "2026-11-22", nil, true)
			do(t, a, "daily", "2026-11-22", nil, false)
			do(t, b, "daily", "2026-11-22", nil, false)
			do(t, b, "daily", "2026-11-21", nil, false)
			do(t, b, "other", "2026-11-21", nil, true)
			do(t, b, "daily", "2026-11-23", nil, true)
			do(t, a, "daily", "2026-11-23", nil, false)
			do(t, a, "daily", "2026-11-22T23:00:00Z", nil, false)
		})
	}
}

// An error of the job leaves the slot open, and so does a panic.
func TestFailedSlotStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector()), connect(t, e.Connector())
		do(t, a, "x", "1", nil, true)
		do(t, a, "x", "2", errJob, true)
		func() {
			defer func() {
				if r := recover(); r != errJob {
					t.Errorf("recovered %v", r)
				}
			}()
			_, _ = once.Do(t.Context(), a, "x", "2", func(context.Context) error { panic(errJob) })
		}()
		do(t, b, "x", "1", nil, false)
		do(t, b, "x", "2", nil, true)
		do(t, a, "x", "2", nil, false)
	})
}

// Other processes wait while a slot runs. If that process dies, or its job fails, one of them
// runs the slot, with a higher token. It does not run again when it has succeeded.
func TestOthersWaitForTheRun(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(e *memdriver.Ensemble, session int64) error
		runs int
	}{
		{"success", func(*memdriver.Ensemble, int64) error { return nil }, 1},
		{"failure", func(*memdriver.Ensemble, int64) error { return errJob }, 2},
		{"loss", func(e *memdriver.Ensemble, session int64) error { e.Expire(session); return nil }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				var mu sync.Mutex
				var tokens []zklock.Token // guarded by mu
				var running atomic.Int32
				job := func(end func(session int64) error) func(context.Context) error {
					return func(ctx context.Context) error {
						n := running.Add(1)
						l, ok := zklock.FromContext(ctx)
						if !ok || n > 1 {
							t.Errorf("the lock is held: %v; %d run at once", ok, n)
							return nil
						}
						mu.Lock()
						tokens = append(tokens, l.Token())
						mu.Unlock()
						time.Sleep(time.Minute)
						found, err := connect(t, e.Connector()).Contenders(t.Context(), "x")
						if err != nil || len(found) == 0 {
							t.Errorf("%+v, %v", found, err)
							return nil
						}
						running.Add(-1) // before the session may expire, since the next run may begin then
						return end(found[0].Session)
					}
				}
				ended := make(chan error, 3)
				for i := range 3 {
					client := connect(t, e.Connector())
					end := func(session int64) error { return nil }
					if i == 0 {
						end = func(session int64) error { return c.end(e, session) }
					}
					go func() {
						_, err := once.Do(t.Context(), client, "x", "1", job(end))
						ended <- err
					}()
					synctest.Wait()
				}
				first := <-ended
				switch c.name {
				case "success":
					if first != nil {
						t.Error(first)
					}
				case "failure":
					if !errors.Is(first, errJob) || errors.Is(first, zklock.ErrLost) {
						t.Errorf("the first run: %v", first)
					}
				case "loss":
					if !errors.Is(first, zklock.ErrLost) {
						t.Errorf("the first run: %v, want ErrLost", first)
					}
				}
				for range 2 {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
				if len(tokens) != c.runs || len(tokens) == 2 && tokens[1].Compare(tokens[0]) <= 0 {
					t.Errorf("runs with the tokens %v, want %d", tokens, c.runs)
				}
			})
		})
	}
}

// The ledger is written although the caller's context ended in the meantime.
func TestLedgerIsWrittenWhenTheContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector())
		ctx, cancel := context.WithCancel(t.Context())
		ran, err := once.Do(ctx, c, "x", "1", func(context.Context) error { cancel(); return nil })
		if !ran || err != nil {
			t.Errorf("%v, %v", ran, err)
		}
		do(t, c, "x", "1", nil, false)
		ran, err = once.Do(ctx, c, "x", "2", func(context.Context) error { return nil })
		if ran || !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v, %v", ran, err)
		}
	})
}

// Mistakes in the program change nothing.
func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector())
		job := func(context.Context) error { t.Error("the job ran"); return nil }
		for what, c := range map[string]struct {
			client     *zklock.Client
			name, slot string
			job        func(context.Context) error
			want       error
		}{
			"no job":       {c, "x", "1", nil, zklock.ErrMisuse},
			"empty slot":   {c, "x", "", job, zklock.ErrMisuse},
			"not UTF-8":    {c, "x", "\xff", job, zklock.ErrMisuse},
			"long slot":    {c, "x", strings.Repeat("1", once.MaxSlot+1), job, zklock.ErrMisuse},
			"no client":    {nil, "x", "1", job, zklock.ErrMisuse},
			"zero client":  {&zklock.Client{}, "x", "1", job, zklock.ErrMisuse},
			"invalid name": {c, "a//b", "1", job, zklock.ErrInvalidName},
		} {
			if ran, err := once.Do(t.Context(), c.client, c.name, c.slot, c.job); ran || !errors.Is(err, c.want) {
				t.Errorf("%s: %v, %v", what, ran, err)
			}
		}
		if _, err := once.Do(t.Context(), c, strings.Repeat("é", 1000), "", job); len(err.Error()) > 1000 {
			t.Errorf("an error with %d bytes", len(err.Error()))
		}
		if err := once.Forget(t.Context(), nil, "x"); !errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("Forget without a client: %v", err)
		}
		if strings.Contains(e.Dump(), "~") {
			t.Errorf("there is a ledger:\n%s", e.Dump())
		}
		longest := strings.Repeat("9", once.MaxSlot)
		do(t, c, "x", longest, nil, true)
		do(t, c, "x", longest, nil, false)
		special := "\u2028<&>\"\\"
		do(t, c, "y", special, nil, true)
		do(t, c, "y", special, nil, false)
	})
}

// A job never joins the lock of its caller: two calls that join one lock would both run the
// slot.
func TestDoJoinsNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector())
		var runs atomic.Int32
		job := func(context.Context) error { runs.Add(1); time.Sleep(time.Second); return nil }
		err := zklock.Do(t.Context(), c.Mutex("x"), func(ctx context.Context, l *zklock.Lock) error {
			for _, opts := range [][]zklock.AcquireOption{nil, {zklock.Reenter()}} {
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						if ran, err := once.Do(ctx, c, "x", "1", job, opts...); ran || !errors.Is(err, zklock.ErrDeadlock) {
							t.Errorf("with %d options: %v, %v; want %v", len(opts), ran, err, zklock.ErrDeadlock)
						}
					})
				}
				wg.Wait()
			}
			if !l.Valid() {
				t.Error("the lock of the caller has ended")
			}
			return nil
		})
		if err != nil || runs.Load() != 0 {
			t.Errorf("%v, %d runs", err, runs.Load())
		}
		do(t, c, "x", "1", nil, true)
	})
}

// The error advises what works for a job. Reenter does not, and neither does another kind of lock.
func TestDoBelowALockOfItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector())
		const want = `once: do "x": the context carries a lock of this name, and a job can neither join it nor wait for it: call Do after its release, with a context that does not carry it`
		for what, a := range map[string]zklock.Acquirer{"mutex": c.Mutex("x"), "reader": c.RWMutex("x").Reader(), "semaphore": c.Semaphore("x", 2)} {
			_ = zklock.Do(t.Context(), a, func(ctx context.Context, _ *zklock.Lock) error {
				for _, opts := range [][]zklock.AcquireOption{nil, {zklock.Reenter()}} {
					ran, err := once.Do(ctx, c, "x", "1", func(context.Context) error { return nil }, opts...)
					if ran || !errors.Is(err, zklock.ErrDeadlock) || err.Error() != want {
						t.Errorf("below a %s, with %d options: %v, %v; want\n%s", what, len(opts), ran, err, want)
					}
				}
				return nil
			})
		}
	})
}
