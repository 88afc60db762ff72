package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// ErrNotLeader means that another scheduler leads, or none does.
var ErrNotLeader = errors.New("this scheduler is not the leader")

// Elector is a gocron.Elector: a candidate in an election. It stands again whenever a term has
// ended. It is safe for concurrent use.
//
// Shut down the scheduler before the Elector, so that no job runs when another candidate leads.
type Elector struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // of the candidacy; set before done is closed

	mu      sync.Mutex
	term    *election.Term // guarded by mu; nil while another candidate leads
	running sync.WaitGroup // the functions of Do in the present term; Add is guarded by mu
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector starts a candidacy. The caller has to call [Elector.Close]. NewElector panics if e
// is nil.
func NewElector(e *election.Election) *Elector {
	if e == nil {
		panic("gocronlock: NewElector: the Election is nil: pass one that election.New returned")
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &Elector{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		x.err = e.Run(ctx, x.lead)
	}()
	return x
}

// lead is one term. The term is resigned when lead has returned, and so not while Do works.
func (x *Elector) lead(ctx context.Context, t *election.Term) error {
	x.mu.Lock()
	x.term = t
	x.mu.Unlock()
	<-ctx.Done()
	x.mu.Lock()
	x.term = nil
	x.mu.Unlock()
	x.running.Wait()
	return nil
}

// IsLeader implements gocron.Elector. It returns nil while this scheduler leads. It makes no
// request: it compares the clock with the proven lease. Otherwise its error matches
// [ErrNotLeader], and also the error that has ended the candidacy for good, such as
// [zklock.ErrInvalidName].
//
// The scheduler may cease to lead while the job runs, if it loses its lock. gocron cannot be
// notified of that. Jobs for which it matters use [Elector.Do].
func (x *Elector) IsLeader(context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.term != nil && x.term.Valid() {
		return nil
	}
	select {
	case <-x.done:
		return fmt.Errorf("gocronlock: %w: %w", ErrNotLeader, x.err)
	default:
		return fmt.Errorf("gocronlock: %w", ErrNotLeader)
	}
}

// Do calls f if this scheduler leads. The context of f ends with ctx, and when the scheduler
// ceases to lead, with the cause; it carries the lock of the term (see [zklock.FromContext]),
// whose token increases from leader to leader. The term is not resigned before f has returned.
//
// Do returns the error of f. It returns an error that matches [ErrNotLeader] without a call of f
// if another scheduler leads, and one that matches [zklock.ErrLost] if the lock was lost while f
// ran, whatever f returned.
func (x *Elector) Do(ctx context.Context, f func(ctx context.Context) error) error {
	if err := x.IsLeader(ctx); err != nil {
		return err
	}
	x.mu.Lock()
	t := x.term
	if t == nil {
		x.mu.Unlock()
		return fmt.Errorf("gocronlock: %w", ErrNotLeader)
	}
	x.running.Add(1)
	x.mu.Unlock()
	defer x.running.Done()
	inner, cancel := t.Context(ctx)
	defer cancel()
	err := f(inner)
	if lost := t.Err(); errors.Is(lost, zklock.ErrLost) && !errors.Is(err, zklock.ErrLost) {
		if err == nil {
			return fmt.Errorf("gocronlock: %w", lost)
		}
		return fmt.Errorf("gocronlock: %w; the function returned: %w", lost, err)
	}
	return err
}

// Close ends the candidacy, and resigns if this scheduler leads. It waits for the functions of
// Do, and then for the ensemble, for a session timeout at most. It returns the error that had
// ended the candidacy before, if there was one.
func (x *Elector) Close() error {
	x.cancel()
	<-x.done
	if errors.Is(x.err, context.Canceled) {
		return nil
	}
	return x.err
}
