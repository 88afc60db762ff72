package election

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Observe returns the leader: at once, and again after each change of the leader or of its
// value. An error that matches [ErrNoLeader] says that no candidate leads.
//
// The tokens never fall, and rise with each term. Changes that follow each other fast, or
// while the loop is busy, may be reported as one; the last state is always reported. A term
// that lasts until the observer has read it is never left out. The absence of a leader
// between two terms may be.
//
// An error that matches [zklock.ErrUnavailable] says that the leader is not known at the
// moment: an observer must forget the former leader. If this client has no right to read the node
// of a leader of another dialect, the error's text says so. Neither ErrUnavailable nor ErrNoLeader
// ends the sequence: if the loop goes on, it gets the leader when one is known. Any other error
// ends the sequence; see [zklock.Client.Watch] for these errors, and for the cost of an observer.
// One more is [zklock.ErrBadEnsemble] with the reason token_regression: the token of a leader is
// lower than one that was reported before, as after a restore from an older snapshot. Each loop
// over the sequence starts again.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if e == nil {
			yield(Leader{}, e.failed("observe", errNoElection))
			return
		}
		o := observer{election: e}
		for contenders, err := range e.client.Watch(ctx, e.name) {
			if err != nil {
				o.reported = false // after an error the state is reported, even if it has not changed
				if !yield(Leader{}, err) {
					return
				}
				continue
			}
			now, changed, err := o.see(contenders)
			if changed && !yield(now, err) || errors.Is(err, errs.ErrTokenRegression) {
				return
			}
		}
	}
}

// observer is one loop over the sequence of an Observe.
type observer struct {
	election *Election
	reported bool         // last was reported, and no error of the Watch since
	last     Leader       // what was reported last; zero if no candidate led
	newest   zklock.Token // the greatest token that was reported
}

// see returns the leader of a queue, and whether to report it.
func (o *observer) see(contenders []zklock.Contender) (now Leader, changed bool, err error) {
	now, leads := leaderOf(contenders)
	if o.reported && now == o.last {
		return now, false, nil
	}
	o.reported, o.last = true, now
	switch {
	case !leads:
		return now, true, o.election.failed("observe", ErrNoLeader)
	case unreadable(now) != nil:
		return Leader{}, true, o.election.failed("observe", unreadable(now))
	case now.Token.Compare(o.newest) < 0:
		return Leader{}, true, o.election.failed("observe", fmt.Errorf("%w: the leader has the token %v after %v", errs.ErrTokenRegression, now.Token, o.newest))
	}
	o.newest = now.Token
	return now, true, nil
}
