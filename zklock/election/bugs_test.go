package election_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Each test here keeps out a bug that users of other libraries have met.

// client-go resigned while the leader still worked.
func TestNoOtherLeadsUntilTheWorkHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := election.New(connect(t, e), "x"), election.New(connect(t, e), "x")
		work := make(chan struct{})
		first := run(t, a, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			<-work // cleans up, and takes its time
			return nil
		})
		second := standing(t, b)
		first.stop()
		time.Sleep(time.Hour / 2)
		if len(second) > 0 { // a receive would take the term
			t.Error("another leads while the first works")
		}
		close(work)
		resign(t, <-second)
		if <-first.done; !errors.Is(first.err, context.Canceled) {
			t.Errorf("Run: %v, want %v", first.err, context.Canceled)
		}
	})
}

// In client-go a lost term ended the candidacy.
func TestALostTermDoesNotEndTheCandidacy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := election.New(connect(t, e), "x", election.WithValue("a"))
		lead, began := terms()
		r := run(t, a, lead)
		last := begun(t, began)
		losses := map[string]func(){
			"expired": func() { e.Expire(sessionOf(t, a, "a")) },
			"deleted": func() { e.Break("/zklock/x") },
		}
		for what, lose := range losses {
			lose()
			now := begun(t, began)
			if now.Token().Compare(last.Token()) <= 0 || last.Valid() || !errors.Is(last.Err(), zklock.ErrLost) {
				t.Errorf("%s: token %v after %v, and the former term's error is %v", what, now.Token(), last.Token(), last.Err())
			}
			last = now
		}
		none(t, "Run has returned", r.done)
	})
}

// In Kubernetes a leader believed that it led, because of what was true before.
func TestNothingIsAnsweredFromMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		op := election.New(connect(t, e), "x")
		a := election.New(connect(t, e), "x", election.WithValue("a"))
		b := election.New(connect(t, e), "x", election.WithValue("b"))
		first := campaign(t, a)
		second := standing(t, b)
		if got := leader(t, op); got != "a" {
			t.Errorf("leader %q, want a", got)
		}
		e.Partition(memdriver.AroundSession(sessionOf(t, op, "a")))
		term := <-second // the first term's session has expired, and its client cannot know
		if first.Valid() {
			t.Error("the first term is valid while another candidate leads")
		}
		for name, by := range map[string]*election.Election{"an observer": op, "the new leader": b} {
			if got := leader(t, by); got != "b" {
				t.Errorf("%s: leader %q, want b", name, got)
			}
		}
		if got := leader(t, a); got != "b" && got != "unknown" {
			t.Errorf("the former leader: leader %q, want b or unknown", got)
		}
		e.Heal()
		resign(t, term)
		before := memcontrol.Of(e).Ops()
		if got := leader(t, op); got != "no leader" {
			t.Errorf("leader %q, want no leader", got)
		}
		if n := memcontrol.Of(e).Ops().Syncs - before.Syncs; n == 0 {
			t.Error("Leader has asked no quorum")
		}
	})
}

// etcd's observers never learned that no candidate leads.
func TestObserversLearnThatThereIsNoLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := election.New(connect(t, e), "x", election.WithValue("a"))
		v := observe(t, election.New(connect(t, e), "x"))
		v.next(t, "before the first candidate", "no leader")
		term := campaign(t, a)
		v.next(t, "the first term", "a")
		resign(t, term)
		v.next(t, "a resignation", "no leader")
		campaign(t, a)
		v.next(t, "the second term", "a")
		e.Expire(sessionOf(t, a, "a"))
		v.next(t, "an expiry", "no leader")
	})
}

// etcd forgot the term when a resignation failed, and could not repeat it.
func TestAFailedResignationIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := election.New(connect(t, e), "x", election.WithValue("a"))
		term := campaign(t, a)
		second := standing(t, election.New(connect(t, e), "x"))
		release := memcontrol.Of(e).HoldRequests(sessionOf(t, a, "a"))
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := term.Resign(ctx); !errors.Is(err, zklock.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a resignation that does not reach the ensemble: %v, want %v and %v", err, zklock.ErrReleasePending, context.DeadlineExceeded)
			}
			cancel()
		}
		if term.Valid() {
			t.Error("the term goes on after its resignation")
		}
		none(t, "another leads before the resignation was confirmed", second)
		release()
		if err := term.Resign(t.Context()); err != nil {
			t.Errorf("the resignation, repeated: %v", err)
		}
		next := <-second
		if err := term.Resign(t.Context()); err != nil {
			t.Errorf("a resignation after its confirmation: %v", err)
		}
		resign(t, next)
	})
}

// In etcd the node of a candidate that had given up stayed. So that candidate led later without
// knowing it.
func TestACandidateThatGivesUpLeavesNoNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := election.New(connect(t, e), "x", election.WithValue("a"))
		term := campaign(t, a)
		c := connect(t, e)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := election.New(c, "x", election.WithValue("b"))
		giveUp := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := b.Campaign(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("campaign: %v, want %v", err, context.DeadlineExceeded)
			}
		}
		giveUp()
		if n := nodes(e); n != 1 {
			t.Errorf("%d nodes after a candidate gave up, want the leader's", n)
		}
		ids := e.Sessions()
		release := memcontrol.Of(e).HoldReplies(ids[len(ids)-1]) // the create is carried out, and its reply does not arrive
		giveUp()
		if n := nodes(e); n != 2 {
			t.Errorf("%d nodes while the reply is missing, want 2", n)
		}
		release()
		time.Sleep(time.Minute)
		if n := nodes(e); n != 1 {
			t.Errorf("%d nodes after the reply, want the leader's", n)
		}
		resign(t, term)
	})
}

// With etcd an election went on with a session that was over.
func TestACandidateOutlivesItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := election.New(connect(t, e), "x", election.WithValue("a"))
		c := connect(t, e)
		b := election.New(c, "x", election.WithValue("b"))
		term := campaign(t, a)
		second := standing(t, b)
		for range 3 {
			e.Expire(sessionOf(t, a, "b"))
			time.Sleep(time.Minute)
		}
		none(t, "a candidate with a new session leads at the same time as the leader", second)
		if n := c.Stats().SessionsOpened; n != 4 {
			t.Errorf("%d sessions, want 4", n)
		}
		resign(t, term)
		next := <-second
		if got := leader(t, a); got != "b" || !next.Valid() {
			t.Errorf("leader %q, want b", got)
		}
		resign(t, next)
	})
}

// A leader that returned at once was elected again in a hot loop.
func TestALeaderThatReturnsAtOnceRestsLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := func(d time.Duration, lead func(ctx context.Context)) (terms int) {
			a := election.New(connect(t, memdriver.New()), "x")
			r := run(t, a, func(ctx context.Context, _ *election.Term) error {
				if terms++; terms > 1000 {
					return election.ErrStop // a hot loop would not let the clock move
				}
				lead(ctx)
				return errors.New("not ready")
			})
			time.Sleep(d)
			r.stop()
			<-r.done
			return terms
		}
		// Pauses of 1, 2, 4, 8, 16 and then 30 seconds, each between its half and its whole.
		if n := count(time.Hour, func(context.Context) {}); n < 120 || n > 250 {
			t.Errorf("%d terms of no length in an hour, want 120 to 250", n)
		}
		// Long terms are followed by pauses of a second.
		if n := count(time.Hour, func(context.Context) { time.Sleep(time.Minute) }); n < 59 || n > 60 {
			t.Errorf("%d terms of a minute in an hour, want 59 or 60", n)
		}
	})
}

// client-go called the stop callback of a candidate that had never led.
func TestACandidateThatNeverLedIsNotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		term := campaign(t, election.New(connect(t, e), "x"))
		called := make(chan string, 10)
		b := election.New(connect(t, e), "x", election.WithStuck(time.Second, func(*election.Term) { called <- "stuck" }))
		r := run(t, b, func(context.Context, *election.Term) error { called <- "lead"; return nil })
		time.Sleep(time.Minute)
		r.stop()
		<-r.done
		time.Sleep(time.Minute)
		none(t, "a function was called for a candidate that never led", called)
		if !errors.Is(r.err, context.Canceled) {
			t.Errorf("Run: %v, want %v", r.err, context.Canceled)
		}
		resign(t, term)
	})
}

// A leader whose function hung led on, and no operator heard of it.
func TestAHangingLeaderIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var log strings.Builder
		type report struct {
			term  *election.Term
			after time.Duration
			valid bool
		}
		var ended time.Time
		reports := make(chan report, 10)
		a := election.New(connect(t, e), "x",
			election.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			election.WithStuck(time.Minute, func(t *election.Term) { reports <- report{t, time.Since(ended), t.Valid()} }))
		hang := make(chan struct{})
		began := make(chan *election.Term, 1)
		r := run(t, a, func(_ context.Context, t *election.Term) error {
			began <- t
			<-hang
			return nil
		})
		term := begun(t, began)
		time.Sleep(time.Hour)
		none(t, "a leader that may lead is reported", reports)
		ended = time.Now()
		r.stop()
		time.Sleep(time.Hour)
		if got := <-reports; got.term != term || got.after != time.Minute || !got.valid {
			t.Errorf("reported %+v, want the term %p after a minute, and valid", got, term)
		}
		none(t, "a hanging leader is reported twice", reports)
		none(t, "Run has returned before the leader's function", r.done)
		close(hang)
		<-r.done
		if n := strings.Count(log.String(), "has not returned"); n != 1 {
			t.Errorf("%d lines in the log, want one:\n%s", n, log.String())
		}
	})
}
