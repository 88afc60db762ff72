package election_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Run returns nil when the leader stops, after it has resigned.
func TestRunStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := election.New(connect(t, e), "x", election.WithValue("a"))
		calls := 0
		err := a.Run(t.Context(), func(ctx context.Context, term *election.Term) error {
			if l, ok := zklock.FromContext(ctx); !ok || l != term.Lock {
				t.Error("the leader's context does not carry the term's lock")
			}
			if got := leader(t, a); got != "a" {
				t.Errorf("leader %q, want a", got)
			}
			if calls++; calls < 3 {
				return nil
			}
			return fmt.Errorf("done: %w", election.ErrStop)
		})
		if err != nil || calls != 3 {
			t.Errorf("Run: %v after %d terms, want nil after 3", err, calls)
		}
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes after Run, want none", n)
		}
	})
}

// Errors that never end end Run at once.
func TestRunEndsWhenItCanNeverLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e)
		closed := connect(t, e)
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
		lead := func(context.Context, *election.Term) error { t.Error("lead was called"); return election.ErrStop }
		carries, err := c.Mutex("x").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inside, cancel := carries.Context(t.Context())
		defer cancel()
		for _, x := range []struct {
			what string
			ctx  context.Context
			e    *election.Election
			lead func(context.Context, *election.Term) error
			want error
		}{
			{"a closed client", t.Context(), election.New(closed, "x"), lead, zklock.ErrClosed},
			{"an invalid name", t.Context(), election.New(c, ""), lead, zklock.ErrInvalidName},
			{"no client", t.Context(), election.New(nil, "x"), lead, zklock.ErrMisuse},
			{"no election", t.Context(), nil, lead, zklock.ErrMisuse},
			{"no function", t.Context(), election.New(c, "x"), nil, zklock.ErrMisuse},
			{"a long value", t.Context(), election.New(c, "x", election.WithValue(strings.Repeat("x", 300))), lead, zklock.ErrConflict},
			{"the lock of an outer context", inside, election.New(c, "x"), lead, zklock.ErrDeadlock},
		} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(x.ctx, time.Hour)
			defer cancel()
			if err := x.e.Run(ctx, x.lead); !errors.Is(err, x.want) || strings.Contains(err.Error(), "Reenter") {
				t.Errorf("%s: %v, want %v, and no advice to join it, since an Election has no option for that", x.what, err, x.want)
			}
			if d := time.Since(began); d != 0 {
				t.Errorf("%s: Run has waited %v", x.what, d)
			}
		}
		if err := carries.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An ephemeral znode above the root is a conflict that passes with its session, so the candidate stands
// again. It does not lead before that, and pauses in between.
func TestRunGoesOnAfterAnEphemeralRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		s, err := e.Connector().Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), "/zklock", nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		led := 0
		r := run(t, election.New(connect(t, e), "x", election.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))),
			func(context.Context, *election.Term) error { led++; return election.ErrStop })
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if n := strings.Count(log.String(), "candidacy failed"); led != 0 || n < 2 || n > 4 {
			t.Errorf("%d terms and %d failed candidacies in 3 s, want none and 2 to 4:\n%s", led, n, log.String())
		}
		if err := s.Close(t.Context()); err != nil { // the znode goes with its session
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		select {
		case <-r.done:
		default:
			t.Fatal("Run has not returned a minute after the znode was gone")
		}
		if r.err != nil || led != 1 {
			t.Errorf("Run has returned %v after %d terms, want nil after one", r.err, led)
		}
	})
}

// A client that is closed during a term ends Run when the leader has returned.
func TestRunEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New())
		lead, began := terms()
		r := run(t, election.New(c, "x"), lead)
		begun(t, began)
		closed := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if <-r.done; !errors.Is(r.err, zklock.ErrClosed) || time.Since(closed) != 0 {
			t.Errorf("Run: %v after %v, want %v at once", r.err, time.Since(closed), zklock.ErrClosed)
		}
	})
}

// A panic of the leader resigns, and goes on.
func TestAPanicResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var second <-chan *election.Term
		func() {
			defer func() {
				if got := recover(); got != "no" {
					t.Errorf("recovered %v, want the leader's panic", got)
				}
			}()
			_ = election.New(connect(t, e), "x").Run(t.Context(), func(context.Context, *election.Term) error {
				second = standing(t, election.New(connect(t, e), "x"))
				panic("no")
			})
		}()
		resign(t, <-second)
	})
}

// Errors of leaders and candidacies are logged, and end nothing. The end of the context is
// not a failure of the leader.
func TestRunLogsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var log strings.Builder
		logger := election.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
		a := election.New(connect(t, e), "x", logger, election.WithValue("a"))
		began := make(chan struct{}, 100)
		r := run(t, a, func(ctx context.Context, _ *election.Term) error {
			if began <- struct{}{}; len(began) == 1 {
				return errors.New("no database")
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		time.Sleep(time.Minute)
		outage := []memdriver.Cut{memdriver.AroundClients(0), memdriver.AroundClients(1), memdriver.AroundClients(2)}
		e.Partition(outage...)
		time.Sleep(10 * time.Minute)
		e.Heal()
		time.Sleep(2 * time.Minute)
		if got := leader(t, a); got != "a" || len(began) != 3 {
			t.Errorf("leader %q after %d terms, want a after 3", got, len(began))
		}
		r.stop()
		<-r.done
		if n := strings.Count(log.String(), "no database"); n != 1 {
			t.Errorf("%d lines on the leader's error, want 1", n)
		}
		if n := strings.Count(log.String(), "function failed"); n != 1 {
			t.Errorf("%d lines on failures of the leader, want 1:\n%s", n, log.String())
		}
		if !strings.Contains(log.String(), "candidacy failed") {
			t.Errorf("no line on a candidacy that failed:\n%s", log.String())
		}
	})
}

// A client that can never have a session fails at once each time: the pauses grow.
func TestRunRestsLongerAfterMistakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		memcontrol.Of(e).MaxTimeout(0, 4*time.Second) // too short for the default tick_time
		var log strings.Builder
		r := run(t, election.New(connect(t, e, zklock.WithLogger(nil)), "x", election.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))),
			func(context.Context, *election.Term) error { t.Error("lead was called"); return election.ErrStop })
		time.Sleep(time.Hour)
		r.stop()
		<-r.done
		if n := strings.Count(log.String(), "candidacy failed"); n < 100 || n > 250 {
			t.Errorf("%d candidacies in an hour, want 100 to 250, such as %.300s", n, log.String())
		}
	})
}

// A client that is closed during a pause ends Run soon, and not only after the pause.
func TestRunEndsWithItsClientInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New())
		var terms atomic.Int32
		r := run(t, election.New(c, "x", election.WithLogger(nil)), func(context.Context, *election.Term) error { terms.Add(1); return nil })
		for terms.Load() < 7 { // the next pause takes 15 seconds at least
			time.Sleep(time.Second)
		}
		closed := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if <-r.done; !errors.Is(r.err, zklock.ErrClosed) || time.Since(closed) > 2*time.Second {
			t.Errorf("Run: %v after %v, want %v within two seconds", r.err, time.Since(closed), zklock.ErrClosed)
		}
	})
}

// An operator asks a leader to resign. The next candidate leads when the leader's function has
// returned, and the former leader stands again behind it.
func TestARevokedLeaderResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		op := connect(t, e)
		candidate := func(value string, opts ...election.Option) *election.Election {
			return election.New(connect(t, e), "x", append(opts, election.WithValue(value))...)
		}
		work, causes := make(chan struct{}), make(chan error, 10)
		began := make(chan *election.Term, 10)
		r := run(t, candidate("a", election.WithRevocable()), func(ctx context.Context, term *election.Term) error {
			began <- term
			<-ctx.Done()
			causes <- context.Cause(ctx)
			<-work
			return context.Cause(ctx)
		})
		first := begun(t, began)
		second := standing(t, candidate("b"))
		revoke := func() {
			t.Helper()
			l, err := candidate("").Leader(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := op.Revoke(t.Context(), "x", l.Node, "maintenance"); err != nil {
				t.Error(err)
			}
		}
		revoke()
		if why := <-causes; !errors.Is(why, zklock.ErrRevoked) || !strings.Contains(why.Error(), "maintenance") {
			t.Errorf("the context has ended with %v, want %v and the reason", why, zklock.ErrRevoked)
		}
		if _, asked := <-first.Revoked(); asked || !first.Valid() {
			t.Error("the term has ended by the request")
		}
		time.Sleep(time.Hour / 2)
		none(t, "another leads while the revoked leader works", second)
		close(work)
		next := <-second
		time.Sleep(time.Minute)
		if all, err := candidate("").Candidates(t.Context()); err != nil || len(all) != 2 || all[0].Label != "b" || all[1].Label != "a" {
			t.Errorf("candidates %+v, %v, want b and then a", all, err)
		}
		// A leader without the option does not notice, and leads on.
		revoke()
		time.Sleep(time.Minute)
		if !next.Valid() || next.Revoked() != nil {
			t.Errorf("the term without the option: %v", next.Err())
		}
		resign(t, next)
		begun(t, began)
		none(t, "Run has returned", r.done)
	})
}

// A leader whose work hangs does not lead for ever: WithMaxHold ends its term, and another candidate leads.
func TestMaxHoldEndsATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := election.New(connect(t, e), "x", election.WithMaxHold(30*time.Minute)), election.New(connect(t, e), "x")
		causes := make(chan error, 1)
		run(t, a, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		})
		lead, began := terms()
		run(t, b, lead)
		start := time.Now()
		if begun(t, began); time.Since(start) < 29*time.Minute {
			t.Errorf("the other candidate leads after %v, want about half an hour", time.Since(start))
		}
		if cause := <-causes; cause != zklock.ErrMaxHold {
			t.Errorf("the term's context ended with %v, want ErrMaxHold", cause)
		}
	})
}

// A leader that returns late resigns although the function of WithStuck has not returned: it may wait for a log, or a
// pager, for as long as that takes.
func TestResigningWhileTheFunctionOfWithStuckWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		called, goOn := make(chan struct{}), make(chan struct{})
		first := election.New(connect(t, e), "x", election.WithLogger(nil), election.WithStuck(time.Second, func(*election.Term) {
			close(called)
			<-goOn
		}))
		r := run(t, first, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			<-called
			return nil
		})
		next := standing(t, election.New(connect(t, e), "x"))
		r.stop()
		began := time.Now()
		select {
		case term := <-next:
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the next one leads %v after the end of the term, want a second later", took)
			}
			resign(t, term)
		case <-time.After(time.Minute):
			t.Error("no other candidate leads while the function of WithStuck waits")
		}
		select {
		case <-r.done:
			t.Error("Run has returned before the function of WithStuck")
		default:
		}
		close(goOn)
		<-r.done
		if t.Failed() {
			resign(t, <-next)
		}
	})
}
