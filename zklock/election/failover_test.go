package election_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The process of a leader dies, at many moments between its heartbeats and between the servers'
// ticks. The next candidate leads after at most the session timeout and two ticks.
func TestADeadLeaderIsFollowedInTime(t *testing.T) {
	const (
		tick = 2 * time.Second // of the servers, by default
		step = 130 * time.Millisecond
	)
	timeout := corekit.SessionTimeout
	var longest time.Duration
	for moment := time.Duration(0); moment < 3*tick; moment += step {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
			first := campaign(t, election.New(connect(t, e), "x", election.WithValue("a")))
			second := standing(t, election.New(connect(t, e), "x"))
			time.Sleep(10*time.Second + moment)
			thaw := e.Freeze(sessionOf(t, election.New(connect(t, e), "x"), "a"))
			killed := time.Now()
			term := <-second
			d := time.Since(killed)
			longest = max(longest, d)
			if d > timeout+2*tick {
				t.Errorf("killed %v later: the next candidate leads %v after that, want at most %v", moment, d, timeout+2*tick)
			}
			if first.Valid() {
				t.Error("the first term is valid while the next candidate leads")
			}
			thaw() // so that its client can be closed
			resign(t, term)
		})
	}
	t.Logf("the next candidate led after at most %v", longest)
}

// When a leader resigns, the next candidate leads two round trips later: those of the delete and
// its event, and of one read.
func TestAResignedLeaderIsFollowedInTwoRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const roundTrip = 20 * time.Millisecond
		e := memdriver.New(memdriver.WithLatency(roundTrip / 2))
		first := campaign(t, election.New(connect(t, e), "x"))
		began := make(chan time.Time, 1)
		r := run(t, election.New(connect(t, e), "x"), func(context.Context, *election.Term) error {
			began <- time.Now()
			return election.ErrStop
		})
		time.Sleep(5 * time.Minute)
		called := time.Now()
		resign(t, first)
		if d := (<-began).Sub(called); d > 2*roundTrip {
			t.Errorf("the next candidate leads %v after the call, want at most %v", d, 2*roundTrip)
		}
		if <-r.done; r.err != nil {
			t.Error(r.err)
		}
	})
}

// A process that is stopped between its grant and the call of its function does not lead
// when it goes on: its lease is over, and its context may not have ended yet.
func TestALeaderThatWasStoppedBeforeItsTermDoesNotLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := 0
		hooks := zklock.Hooks{Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			return ctx, func(r zklock.AcquireResult) {
				if stopped++; r.Lock != nil && stopped == 1 {
					lease.AddSuspended(time.Minute) // no timer of the process has noticed
				}
			}
		}}
		terms := 0
		err := election.New(connect(t, memdriver.New(), zklock.WithHooks(hooks)), "x").Run(t.Context(), func(ctx context.Context, term *election.Term) error {
			if terms++; ctx.Err() != nil || !term.Valid() {
				t.Errorf("term %d: the function is called, and its context has ended with %v, and the term is valid: %v", terms, context.Cause(ctx), term.Valid())
			}
			return election.ErrStop
		})
		if err != nil || terms != 1 || stopped != 2 {
			t.Errorf("Run: %v after %d terms and %d candidacies, want 1 and 2", err, terms, stopped)
		}
	})
}

// A lock that was acquired inside a term, with Reenter, keeps the term's node until its own
// release. No other candidate leads before that, and a second Resign waits for it.
func TestALockThatJoinedATermKeepsItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e)
		term := campaign(t, election.New(c, "x"))
		inside, cancel := term.Context(t.Context())
		defer cancel()
		joined, err := c.Mutex("x").Acquire(inside, zklock.Reenter())
		if err != nil {
			t.Fatal(err)
		}
		second := standing(t, election.New(connect(t, e), "x"))
		resign(t, term)
		if !errors.Is(term.Err(), zklock.ErrReleased) || !joined.Valid() {
			t.Errorf("after Resign: the term %v, and the lock that joined it %v", term.Err(), joined.Err())
		}
		if err := term.Resign(t.Context()); !errors.Is(err, zklock.ErrReleasePending) {
			t.Errorf("Resign once more, while a lock has the node: %v, want %v", err, zklock.ErrReleasePending)
		}
		none(t, "another leads while a lock that joined the term is held", second)
		if err := joined.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := term.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		resign(t, <-second)
	})
}

// The methods of a zero Term fail, and do not panic.
func TestZeroTerm(t *testing.T) {
	for _, term := range []*election.Term{nil, {}} {
		for what, err := range map[string]error{
			"Resign": term.Resign(t.Context()), "SetValue": term.SetValue(t.Context(), "v"), "a long value": term.SetValue(t.Context(), string(make([]byte, 300))),
		} {
			if !errors.Is(err, zklock.ErrMisuse) {
				t.Errorf("%s: %v, want %v", what, err, zklock.ErrMisuse)
			}
		}
	}
}
