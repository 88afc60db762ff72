package election_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Observe reports leaders and their values, and not the candidates that come and go.
func TestObserveReportsTheLeaderOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		candidate := func(value string) *election.Election {
			return election.New(connect(t, e), "x", election.WithValue(value))
		}
		a, b, c := candidate("a"), candidate("b"), candidate("c")
		v := observe(t, candidate(""))
		v.next(t, "a name that is not in use", "no leader")
		first := campaign(t, a)
		v.next(t, "a leader", "a")
		second, third := standing(t, b), standing(t, c)
		v.next(t, "candidates")
		if err := first.SetValue(t.Context(), "a, warm"); err != nil {
			t.Error(err)
		}
		v.next(t, "a value", "a, warm")
		resign(t, first)
		v.next(t, "a resignation", "b")
		e.Expire(sessionOf(t, a, "b"))
		v.next(t, "an expiry", "c")
		reader, err := connect(t, e).RWMutex("x").Reader().TryAcquire(t.Context())
		if !errors.Is(err, zklock.ErrNotAcquired) || reader != nil {
			t.Errorf("a reader while a candidate leads: %v", err)
		}
		resign(t, <-third)
		v.next(t, "the last resignation", "no leader")
		if reader, err = connect(t, e).RWMutex("x").Reader().Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		v.next(t, "a reader, which does not lead")
		if err := reader.Release(t.Context()); err != nil {
			t.Error(err)
		}
		lost := <-second
		for range 2 {
			if err := lost.Resign(t.Context()); !errors.Is(err, zklock.ErrLost) {
				t.Errorf("the resignation of a lost term: %v, want %v", err, zklock.ErrLost)
			}
		}
	})
}

// An observer that is busy misses short terms, but neither the last state nor a term that
// lasts until it looks. Tokens rise.
func TestObserveLeavesOutNoTermThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		looks := make(chan chan string) // the observer reads its next state when the test asks
		done := make(chan struct{})
		go func() {
			defer close(done)
			var last zklock.Token
			for l, err := range election.New(connect(t, e), "x").Observe(ctx) {
				if err == nil && l.Token.Compare(last) <= 0 {
					t.Errorf("token %v after %v", l.Token, last)
				}
				if err == nil {
					last = l.Token
				}
				select {
				case answer := <-looks:
					answer <- state(l, err)
				case <-ctx.Done():
				}
			}
		}()
		next := func() string {
			answer := make(chan string, 1)
			looks <- answer
			got := <-answer
			time.Sleep(time.Second)
			return got
		}
		if got := next(); got != "no leader" {
			t.Errorf("first state %q, want no leader", got)
		}
		var term *election.Term
		for round := range 10 {
			for i := range 5 {
				if term != nil {
					resign(t, term)
				}
				term = campaign(t, election.New(c, "x", election.WithValue(fmt.Sprint(round, ".", i))))
			}
			// The observer's next state may be older than its look. The one after it is not.
			last := fmt.Sprint(round, ".", 4)
			got := next()
			if got != last {
				got = next()
			}
			if got != last {
				t.Errorf("the observer has read %q, want %q, which lasts", got, last)
			}
		}
		resign(t, term)
		time.Sleep(time.Second)
		if got := next(); got != "no leader" {
			t.Errorf("last state %q, want no leader", got)
		}
		cancel()
		<-done
	})
}

// During an outage the leader is not known. Then it is reported again, although it has not
// changed, and the sequence goes on.
func TestObserveGoesOnAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := election.New(connect(t, e), "x", election.WithValue("a"))
		term := campaign(t, a)
		v := observe(t, election.New(connect(t, e), "x"))
		v.next(t, "a leader", "a")
		outage := func() {
			e.Partition(memdriver.AroundClients(0), memdriver.AroundClients(1), memdriver.AroundClients(2))
		}
		outage()
		time.Sleep(time.Second)
		e.Heal()
		v.next(t, "a short outage")
		if !term.Valid() {
			t.Fatalf("the term has ended: %v", term.Err())
		}
		outage()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		unknown := len(v.states)
		for len(v.states) > 0 {
			if got := <-v.states; got != "unknown" {
				t.Errorf("reported %q during an outage, want unknown", got)
			}
		}
		if unknown == 0 {
			t.Error("an observer learned nothing of an outage of ten minutes")
		}
		e.Heal()
		time.Sleep(time.Minute)
		for len(v.states) > 1 {
			if got := <-v.states; got != "unknown" {
				t.Errorf("reported %q before the end of the outage, want unknown", got)
			}
		}
		v.next(t, "the end of an outage", "no leader")
		outage()
		time.Sleep(10 * time.Minute)
		e.Heal()
		time.Sleep(time.Minute)
		for len(v.states) > 1 {
			<-v.states
		}
		v.next(t, "the end of an outage that has changed nothing", "no leader")
	})
}

// Other errors end the sequence.
func TestObserveEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e)
		ended := func(what string, want error, ctx context.Context, by *election.Election, during func()) {
			t.Helper()
			n := 0
			var last error
			for _, err := range by.Observe(ctx) {
				if n++; n == 1 && during != nil {
					during()
				}
				if n > 10 {
					t.Fatalf("%s: the sequence goes on", what)
				}
				last = err
			}
			if !errors.Is(last, want) {
				t.Errorf("%s: %v, want %v", what, last, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended("a context that ends", context.Canceled, ctx, election.New(c, "x"), cancel)
		ended("a name that is too long", zklock.ErrInvalidName, t.Context(), election.New(c, string(make([]byte, 5000))), nil)
		ended("no election", zklock.ErrMisuse, t.Context(), nil, nil)
		closed := connect(t, e)
		ended("a client that is closed", zklock.ErrClosed, t.Context(), election.New(closed, "x"), func() { _ = closed.Close() })
	})
}
