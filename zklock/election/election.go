package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
)

// Election is an election with a name. It is immutable and safe for concurrent use. A
// process may stand with several candidates at once: each call of Run or Campaign is one.
type Election struct {
	client *zklock.Client
	name   string
	settings
}

// New returns the election with that name. It makes no request. The rules of names are those
// of [zklock.Client.Mutex]; a candidacy under an invalid name fails with
// [zklock.ErrInvalidName].
func New(c *zklock.Client, name string, opts ...Option) *Election {
	e := &Election{client: c, name: name, settings: settings{stuckAfter: stuckAfter}}
	for _, o := range opts {
		if o != nil {
			o.apply(&e.settings)
		}
	}
	return e
}

// Name returns the election's name.
func (e *Election) Name() string {
	if e == nil {
		return ""
	}
	return e.name
}

// Campaign stands for election and waits until the candidate leads. It returns errors as
// [zklock.Acquirer] describes for Acquire: after an error the candidate does not lead, and
// its node is removed, or goes with its session. ctx bounds the wait only. A candidate whose
// session ends while it waits stands again at the end of the queue.
//
// The caller must call [Term.Resign] when its work has ended. The term ends before that if the
// lock is lost; use the context of [zklock.Lock.Context] for the work. Run does both.
func (e *Election) Campaign(ctx context.Context) (*Term, error) {
	if e == nil {
		return nil, e.failed("campaign", errNoElection)
	}
	if err := checkValue(e.value); err != nil {
		return nil, e.failed("campaign", err)
	}
	// WithCandidacy implies WithoutHandover, which gives each term a node and a Zxid of its own.
	opts := []zklock.AcquireOption{zklock.WithCandidacy(), zklock.WithLabel(e.value), zklock.WithMaxHold(e.maxHold)}
	if e.revocable {
		opts = append(opts, zklock.WithRevocable())
	}
	lock, err := e.client.Mutex(e.name).Acquire(ctx, opts...)
	switch {
	case errors.Is(err, zklock.ErrDeadlock):
		return nil, e.failed("campaign", errCarried)
	case err != nil:
		return nil, err
	}
	return &Term{Lock: lock, client: e.client}, nil
}

// Leader asks the ensemble for the leader. It never answers from memory. The error matches
// [ErrNoLeader] if no candidate leads, and [zklock.ErrUnavailable] if the ensemble cannot be
// reached, or if the node of a leader of another dialect cannot be read. See
// [zklock.Client.Contenders] for the others.
//
// The answer is as of a moment during the call. It costs as many requests as
// [Election.Candidates]. To follow the leader, use [Election.Observe].
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	candidates, err := e.Candidates(ctx)
	if err != nil {
		return Leader{}, err
	}
	l, ok := leaderOf(candidates)
	if !ok {
		return Leader{}, e.failed("leader", ErrNoLeader)
	}
	if err := unreadable(l); err != nil {
		return Leader{}, e.failed("leader", err)
	}
	return l, nil
}

// Candidates returns the leader and then the candidates that wait, in the order of the queue:
// the first of them leads next. It costs a sync, a list, and a read for each candidate. The
// Label of a candidate is its value.
func (e *Election) Candidates(ctx context.Context) ([]zklock.Contender, error) {
	if e == nil {
		return nil, e.failed("candidates", errNoElection)
	}
	return e.client.Contenders(ctx, e.name)
}

// failed adds the operation and the election to an error.
func (e *Election) failed(op string, err error) error {
	return fmt.Errorf("election: %s %q: %w", op, e.Name(), err)
}
