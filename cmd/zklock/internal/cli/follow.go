package cli

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// rootEvery is how often a command that goes on looks for a root that does not exist.
const rootEvery = time.Second

// follow calls show with each state of a sequence until ctx ends, and then returns nil. If the root
// does not exist, the name is not in use: follow then calls show once with the error none, and
// looks again until the root exists. While the ensemble is unreachable, show gets that error.
// follow returns an error that ends the sequence.
func follow[T any](ctx context.Context, states iter.Seq2[T, error], none error, show func(T, error) error) error {
	for rootless := false; ; {
		var last error
		for state, err := range states {
			if last = err; isRootMissing(err) {
				break
			}
			if ctx.Err() != nil {
				return nil
			}
			if err != nil && !errors.Is(err, zklock.ErrUnavailable) && !errors.Is(err, election.ErrNoLeader) {
				return failed(err)
			}
			rootless = false
			if err := written(show(state, err)); err != nil {
				return err
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case !isRootMissing(last):
			return failed(last)
		case !rootless:
			rootless = true
			var state T
			if err := written(show(state, none)); err != nil {
				return err
			}
		}
		pause := time.NewTimer(rootEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}
