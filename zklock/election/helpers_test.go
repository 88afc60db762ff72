package election_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// connect opens a client with one session, and closes it at the end of the test.
func connect(t *testing.T, e *memdriver.Ensemble, opts ...zklock.Option) *zklock.Client {
	t.Helper()
	return open(t, zklock.Config{Connector: e.Connector(), PoolMaxSessions: 1}, opts...)
}

// open opens a client, and closes it at the end of the test.
func open(t *testing.T, cfg zklock.Config, opts ...zklock.Option) *zklock.Client {
	t.Helper()
	cfg.SessionTimeout = cmp.Or(cfg.SessionTimeout, corekit.SessionTimeout)
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, corekit.ConnectTimeout)
	c, err := zklock.OpenConfig(cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

// campaign leads without waiting.
func campaign(t *testing.T, e *election.Election) *election.Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	term, err := e.Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// standing stands in the background. A candidate that never leads fails after an hour.
func standing(t *testing.T, e *election.Election) <-chan *election.Term {
	t.Helper()
	got := make(chan *election.Term, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		term, err := e.Campaign(ctx)
		if err != nil {
			t.Errorf("campaign: %v", err)
			close(got)
			return
		}
		got <- term
	}()
	synctest.Wait()
	return got
}

// running is a Run in the background.
type running struct {
	stop context.CancelFunc
	done chan struct{} // closed after Run has returned
	err  error         // of Run; read it after done
}

// run begins a Run. It ends at the end of the test, if not before.
func run(t *testing.T, e *election.Election, lead func(context.Context, *election.Term) error) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = e.Run(ctx, lead)
	}()
	t.Cleanup(func() { cancel(); <-r.done })
	synctest.Wait()
	return r
}

// terms returns a function that leads until its context ends, and a channel that gets each of
// its terms.
func terms() (lead func(context.Context, *election.Term) error, began chan *election.Term) {
	began = make(chan *election.Term, 1000)
	return func(ctx context.Context, t *election.Term) error {
		began <- t
		<-ctx.Done()
		return ctx.Err()
	}, began
}

// begun returns the next term of a Run. It waits for an hour at most: without a limit, a synctest
// bubble without a new term would go on for ever, since heartbeats move its clock.
func begun(t *testing.T, began <-chan *election.Term) *election.Term {
	t.Helper()
	select {
	case term := <-began:
		return term
	case <-time.After(time.Hour):
		t.Fatal("no term has begun after an hour")
		return nil
	}
}

// none fails the test if a channel has something.
func none[T any](t *testing.T, what string, c <-chan T) {
	t.Helper()
	synctest.Wait()
	select {
	case <-c:
		t.Error(what)
	default:
	}
}

// leader returns the leader in the form of a view's states.
func leader(t *testing.T, e *election.Election) string {
	t.Helper()
	l, err := e.Leader(t.Context())
	return state(l, err)
}

func state(l election.Leader, err error) string {
	switch {
	case errors.Is(err, election.ErrNoLeader):
		return "no leader"
	case errors.Is(err, zklock.ErrUnavailable):
		return "unknown"
	case err != nil:
		return "error: " + err.Error()
	}
	return l.Value
}

// view is an observer in the background.
type view struct {
	states chan string
	tokens []zklock.Token
	done   chan struct{}
}

func observe(t *testing.T, e *election.Election) *view {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	v := &view{states: make(chan string, 1000), done: make(chan struct{})}
	t.Cleanup(func() { cancel(); <-v.done })
	go func() {
		defer close(v.done)
		for l, err := range e.Observe(ctx) {
			if err == nil {
				v.tokens = append(v.tokens, l.Token)
			}
			v.states <- state(l, err)
		}
	}()
	return v
}

// next checks that exactly these states have been reported since the last call.
func (v *view) next(t *testing.T, what string, want ...string) {
	t.Helper()
	time.Sleep(time.Second) // of the bubble: the pause between two looks is over
	synctest.Wait()
	var got []string
	for len(v.states) > 0 {
		got = append(got, <-v.states)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: reported %q, want %q", what, got, want)
	}
}

// nodes counts the candidates' nodes in the ensemble.
func nodes(e *memdriver.Ensemble) int {
	synctest.Wait()
	return strings.Count(e.Dump(), "_c_")
}

func resign(t *testing.T, term *election.Term) {
	t.Helper()
	if err := term.Resign(t.Context()); err != nil {
		t.Error(err)
	}
}

// sessionOf returns the session of the candidate with a value.
func sessionOf(t *testing.T, e *election.Election, value string) int64 {
	t.Helper()
	candidates, err := e.Candidates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range candidates {
		if c.Label == value {
			return c.Session
		}
	}
	t.Fatalf("no candidate %q", value)
	return 0
}
