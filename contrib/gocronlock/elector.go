package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error // of the candidacy; set before done is closed

	mu      sync.Mutex
	term    *election.Term  // guarded by mu; nil while another candidate leads
	office  context.Context // guarded by mu; ends when this scheduler has to stop leading
	running sync.WaitGroup  // the functions of Do in the present term; Add is guarded by mu
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector starts a candidacy. The caller must call [Elector.Close]. NewElector panics if e
// is nil.
func NewElector(e *election.Election) *Elector {
	if e == nil {
		panic("gocronlock: NewElector: the Election is nil: pass one that election.New returned")
	}
	ctx, cancel := context.WithCancelCause(context.Background())
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
	x.term, x.office = t, ctx
	x.mu.Unlock()
	<-ctx.Done()
	x.mu.Lock()
	x.term, x.office = nil, nil
	x.mu.Unlock()
	x.running.Wait()
	return nil
}

// IsLeader implements gocron.Elector. It returns nil while this scheduler leads. It makes no
// request: it compares the clock with the proven lease. Otherwise its error matches
// [ErrNotLeader], and also the error that has ended the candidacy for good, such as
// [zklock.ErrInvalidName].
//
// The scheduler may lose its lock, and with it the lead, while the job runs. gocron has no way
// to learn of that. If it matters to a job, use [Elector.Do].
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
// ceases to lead, with the cause: it lost its lock, or [Elector.Close] was called. The context
// carries the lock of the term (see [zklock.FromContext]), whose token increases from leader to
// leader. The term is not resigned before f has returned.
//
// Do returns the error of f. If another scheduler leads, it does not call f and returns an
// error that matches [ErrNotLeader]. If the lock was lost while f ran, its error matches
// [zklock.ErrLost], whatever f returned. If f is nil, the error matches [zklock.ErrMisuse].
func (x *Elector) Do(ctx context.Context, f func(ctx context.Context) error) error {
	if f == nil {
		return fmt.Errorf("gocronlock: %w: the function is nil: pass the job", zklock.ErrMisuse)
	}
	if err := x.IsLeader(ctx); err != nil {
		return err
	}
	x.mu.Lock()
	t, office := x.term, x.office
	if t == nil {
		x.mu.Unlock()
		return fmt.Errorf("gocronlock: %w", ErrNotLeader)
	}
	x.running.Add(1)
	x.mu.Unlock()
	defer x.running.Done()
	carrying, cancel := t.Context(ctx)
	defer cancel()
	inner, end := context.WithCancelCause(carrying)
	defer end(nil)
	defer context.AfterFunc(office, func() { end(context.Cause(office)) })()
	err := f(inner)
	if lost := lossOf(t); lost != nil && !errors.Is(err, zklock.ErrLost) {
		if err == nil {
			return fmt.Errorf("gocronlock: %w", lost)
		}
		return fmt.Errorf("gocronlock: %w; the function returned: %w", lost, err)
	}
	return err
}

// lease is what lossOf asks of a lock.
type lease interface {
	Name() string
	Valid() bool
	Err() error
}

// lossOf returns the loss of a lock; nil if it was not lost. A process that was stopped finds that
// the lease has run out before the loss is reported.
func lossOf(l lease) error {
	valid := l.Valid() // before Err, so that a release in between is not taken for a loss
	switch err := l.Err(); {
	case errors.Is(err, zklock.ErrLost):
		return err
	case err == nil && !valid:
		return &zklock.LostError{Name: l.Name(), Cause: zklock.ErrLeaseOver, At: time.Now()}
	}
	return nil
}

// errClosed ends the contexts of Do when an Elector is closed.
var errClosed = fmt.Errorf("gocronlock: the Elector was closed: %w", ErrNotLeader)

// Close ends the candidacy, and resigns if this scheduler leads. It ends the contexts of the
// functions of Do and waits for these functions, and then for the ensemble, for a session timeout
// at most. It returns the error that had ended the candidacy before, if there was one.
func (x *Elector) Close() error {
	x.cancel(errClosed)
	<-x.done
	if errors.Is(x.err, context.Canceled) {
		return nil
	}
	return x.err
}
