package holding_test

import (
	"errors"
	"testing"

	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/zklock"
)

// state is a lock in a state that a test sets.
type state struct {
	valid bool
	err   error
}

func (state) Name() string  { return "x" }
func (s state) Valid() bool { return s.valid }
func (s state) Err() error  { return s.err }

// A lease that has run out is a loss, also before the loss is reported. A release is not one.
func TestLoss(t *testing.T) {
	reported := &zklock.LostError{Name: "x", Cause: errors.New("session expired")}
	for what, x := range map[string]struct {
		state
		want error
	}{
		"held":             {state{true, nil}, nil},
		"lost":             {state{false, reported}, reported},
		"not reported yet": {state{false, nil}, zklock.ErrLeaseOver},
		"released":         {state{false, zklock.ErrReleased}, nil},
	} {
		if err := holding.Loss(x); !errors.Is(err, x.want) || x.want != nil && !errors.Is(err, zklock.ErrLost) {
			t.Errorf("%s: %v, want %v", what, err, x.want)
		}
	}
}
