package gocronlock

import (
	"errors"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// IsLeader looks at the lock of the term, also before the candidacy has noticed the loss.
// TestElectorAfterSuspension shows that it looks at the lease before the lock has noticed.
func TestIsLeaderLooksAtTheLock(t *testing.T) {
	c, e := zklocktest.New(t)
	term, err := election.New(c, "cron").Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := &Elector{term: term, done: make(chan struct{})}
	if err := x.IsLeader(t.Context()); err != nil {
		t.Errorf("IsLeader during the term: %v", err)
	}
	e.ExpireAll()
	<-term.Done()
	if err := x.IsLeader(t.Context()); !errors.Is(err, ErrNotLeader) {
		t.Errorf("IsLeader after the loss: %v, want ErrNotLeader", err)
	}
}

// state is a lock in a state that a test sets.
type state struct {
	valid bool
	err   error
}

func (state) Name() string  { return "cron" }
func (s state) Valid() bool { return s.valid }
func (s state) Err() error  { return s.err }

// A lease that has run out is a loss, also before the loss is reported. A release is not one.
func TestLossOf(t *testing.T) {
	reported := &zklock.LostError{Name: "cron", Cause: errors.New("session expired")}
	for what, x := range map[string]struct {
		state
		lost bool
	}{
		"held":             {state{true, nil}, false},
		"lost":             {state{false, reported}, true},
		"not reported yet": {state{false, nil}, true},
		"released":         {state{false, zklock.ErrReleased}, false},
	} {
		err := lossOf(x)
		if (err != nil) != x.lost || x.lost && !errors.Is(err, zklock.ErrLost) {
			t.Errorf("%s: %v, want a loss: %v", what, err, x.lost)
		}
		if x.err != nil && x.lost && !errors.Is(err, x.err) {
			t.Errorf("%s: %v, want %v", what, err, x.err)
		}
	}
}
