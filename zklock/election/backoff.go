package election

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// The pauses between two candidacies of a Run. A leader's function that returns at once must
// not make the ensemble elect in a hot loop; one that has worked for a while stands again soon.
const (
	firstPause = time.Second
	mostPause  = 30 * time.Second
	longTerm   = 30 * time.Second // a term that lasts as long is not short
)

// backoff chooses the pauses of one Run.
type backoff struct {
	pause time.Duration // the last one, without jitter
}

// next returns the pause without jitter. short means that the term before it was short, or
// that the candidacy failed, for a reason that standing again does not change: then the
// pause doubles.
func (b *backoff) next(short bool) time.Duration {
	if b.pause == 0 || !short {
		b.pause = firstPause
	} else {
		b.pause = min(2*b.pause, mostPause)
	}
	return b.pause
}

// closedEvery is how often a pause looks whether the client was closed.
const closedEvery = time.Second

// rest waits between half of d and d, so that candidates that failed together do not stand
// together. It returns early if ctx ends, and soon after the client was closed.
func rest(ctx context.Context, c *zklock.Client, d time.Duration) {
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	look := time.NewTicker(closedEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-look.C:
			if errors.Is(c.Healthy(), zklock.ErrClosed) { // which also opens a session for the next candidacy, if there is none
				return
			}
		}
	}
}
